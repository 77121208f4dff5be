# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows along a factor of an op, as far as it matters what a device receives for its block of the result."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.resharding.window_halo import WindowHalo, window_halo


@dataclass(frozen=True, slots=True)
class FactorWindow:
    """Windows along a factor, of `size` elements of an operand for `result_size`, as `window_halo` has them.

    Those of an operand that is a part of the result are as `part_halo` has them.
    """

    factor: int
    operand: int
    size: int
    result_size: int
    stride: int
    extent: int
    offset: int = 0
    dilation: int = 1
    is_part: bool = False

    def halo(self, blocks: int) -> WindowHalo | None:
        """The halo of that many blocks; None where it is no exchange of neighbours."""
        if self.is_part:
            return part_halo(self.size, self.result_size, blocks, -self.offset)
        geometry = self.stride, self.extent, self.offset, self.dilation
        return window_halo(self.size, self.result_size, blocks, *geometry)

    def received(self, blocks: int) -> float:
        """What a device receives, in blocks: all others, where it is no exchange of neighbours."""
        halo = self.halo(blocks)
        return blocks - 1 if halo is None else (halo.below + halo.above) / max(1, halo.block)


def part_halo(size: int, result_size: int, blocks: int, start: int) -> WindowHalo | None:
    """The halo of an operand that is the part of a result from `start` on; a device takes its block and all of that.

    None where a device needs more than its neighbours have.
    """
    block, result_block = -(-size // blocks), -(-result_size // blocks)
    below = above = 0
    for number in range(blocks):
        first = max(0, number * result_block - start)
        end = min(size, (number + 1) * result_block - start)
        if first < end:
            below = max(below, number * block - first)
            above = max(above, end - (number + 1) * block)
    if max(below, above) > block or not block:
        return None
    return WindowHalo(block, below, above, head=0, tail=0, first=0, step=0, footprint=below + block + above)
