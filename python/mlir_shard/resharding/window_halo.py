# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The borders that a device needs of its neighbours' blocks, so that its block of a result has all its windows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowHalo:
    """A block of `block` elements gets `below` elements of the one before and `above` of the one behind it.

    Of these together, and `tail` elements of anything, the device with block p takes `footprint` from `first + p *
    step` on, or where its block of the result is empty from the nearest place there is.
    """

    block: int
    below: int
    above: int
    tail: int
    first: int
    step: int
    footprint: int

    @property
    def last_start(self) -> int:
        """The last place from which there are enough elements."""
        return self.below + self.block + self.above + self.tail - self.footprint

    def starts_inside(self, blocks: int) -> bool:
        """Whether all devices find their elements without being brought to the nearest place."""
        ends = self.first, self.first + (blocks - 1) * self.step
        return min(ends) >= 0 and max(ends) <= self.last_start


def window_halo(
    size: int, result_size: int, blocks: int, stride: int, extent: int, offset: int = 0
) -> WindowHalo | None:
    """The halo of a dimension of `size` elements in that many blocks, for a result of `result_size` in as many.

    Element i of the result needs `extent` elements from `offset + stride * i` on. None where a device needs more than
    its neighbours have.
    """
    block, result_block = -(-size // blocks), -(-result_size // blocks)
    below = above = 0
    filled = range(-(-result_size // result_block)) if result_size else range(0)
    for number in filled:
        last = min(result_size, (number + 1) * result_block) - 1
        below = max(below, number * block - (offset + stride * number * result_block))
        above = max(above, offset + stride * last + extent - (number + 1) * block)
    if max(below, above) > block or not block:
        return None
    footprint = stride * (result_block - 1) + extent
    first, step = below + offset, stride * result_block - block
    ends = [first + number * step + footprint for number in filled]
    tail = max(0, max(ends, default=0) - (below + block + above))
    return WindowHalo(block, below, above, tail, first, step, footprint)
