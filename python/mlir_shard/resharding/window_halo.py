# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The borders that a device needs of the blocks around its own, so that its block of a result has all its windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowHalo:
    """A block of `block` elements gets the `below` elements before it and the `above` behind it.

    These may reach over several blocks. Of them together, with `head` elements of anything in front and `tail` behind,
    the device with block p takes `footprint` from `first + p * step` on, or where its block of the result is empty from
    the nearest place there is.
    """

    block: int
    below: int
    above: int
    head: int
    tail: int
    first: int
    step: int
    footprint: int

    @property
    def last_start(self) -> int:
        """The last place from which there are enough elements."""
        return self.head + self.below + self.block + self.above + self.tail - self.footprint

    def starts_inside(self, blocks: int) -> bool:
        """Whether all devices find their elements without being brought to the nearest place."""
        ends = self.first, self.first + (blocks - 1) * self.step
        return min(ends) >= 0 and max(ends) <= self.last_start

    def hops(self) -> Iterator[tuple[int, int, int]]:
        """From how many blocks away how many elements below and above come: the nearest blocks first."""
        for hop in range(1, -(-max(self.below, self.above) // self.block) + 1):
            below, above = (min(self.block, max(0, size - (hop - 1) * self.block)) for size in (self.below, self.above))
            yield hop, below, above


def window_halo(
    size: int, result_size: int, blocks: int, stride: int, extent: int, offset: int = 0, dilation: int = 1
) -> WindowHalo | None:
    """The halo of a dimension of `size` elements in that many blocks, for a result of `result_size` in as many.

    Elements are `dilation` places apart. Element i of the result needs those at the `extent` places from
    `offset + stride * i` on. None where to gather all blocks costs no more than those that are further away than the
    neighbours', or where windows of one block of the result lie otherwise between elements than those of another.
    """
    block, result_block = -(-size // blocks), -(-result_size // blocks)
    moved, between = divmod(stride * result_block, dilation)
    start = -(-offset // dilation)
    footprint = _end(result_block - 1, stride, extent, offset, dilation) - start
    if not block or footprint < 1 or (between and blocks > 1):
        return None
    below = above = 0
    filled = range(-(-result_size // result_block)) if result_size else range(0)
    for number in filled:
        last = min(result_size, (number + 1) * result_block) - 1
        begin = max(0, start + number * moved)
        end = min(size, _end(last, stride, extent, offset, dilation))
        if begin < end:
            below = max(below, number * block - begin)
            above = max(above, end - (number + 1) * block)
    if max(below, above) > block and below + above >= (blocks - 1) * block:
        return None
    first, step = below + start, moved - block
    starts = [first + number * step for number in filled]
    head = max(0, -min(starts, default=0))
    tail = max(0, max(starts, default=0) + footprint - (below + block + above))
    return WindowHalo(block, below, above, head, tail, first + head, step, footprint)


def _end(element: int, stride: int, extent: int, offset: int, dilation: int) -> int:
    """The first element behind the window of an element of the result."""
    return (offset + stride * element + extent - 1) // dilation + 1
