# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the blocks of two shardings of one dimension cut each other.

A dimension of n elements lies in blocks of s = ceil(n / k) elements before and of t after. Both grids together cut it
at every multiple of s and of t, a pattern that repeats after lcm(s, t) elements. Between two cuts is a segment, which
is in one block of either grid; a tile of a tensor is a product of segments.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.sharding.layout import block_size


@dataclass(frozen=True, slots=True)
class Segment:
    """The elements `start` to `stop` of a dimension, which are in these blocks before and after."""

    start: int
    stop: int
    source_block: int
    target_block: int

    @property
    def size(self) -> int:
        """The number of elements, at least 1."""
        return self.stop - self.start


def segments_by_target(size: int, source_blocks: int, target_blocks: int) -> tuple[tuple[Segment, ...], ...]:
    """For each target block its segments in ascending order, none where it is empty.

    `size` is in elements; of a block from b to e the source blocks are number b // s to (e - 1) // s.
    """
    source_step, target_step = block_size(size, source_blocks), block_size(size, target_blocks)
    result = []
    for block in range(target_blocks):
        begin, end = min(block * target_step, size), min((block + 1) * target_step, size)
        sources = range(begin // source_step, (end - 1) // source_step + 1) if begin < end else range(0)
        result.append(
            tuple(
                Segment(max(begin, source * source_step), min(end, (source + 1) * source_step), source, block)
                for source in sources
            )
        )
    return tuple(result)


def overlap(size: int, source_blocks: int, source_block: int, target_blocks: int, target_block: int) -> int:
    """The number of elements that a source block and a target block have in common."""
    source_step, target_step = block_size(size, source_blocks), block_size(size, target_blocks)
    begin = max(source_block * source_step, target_block * target_step)
    end = min((source_block + 1) * source_step, (target_block + 1) * target_step, size)
    return max(0, end - begin)


def blocks_nest(size: int, blocks: int, other_blocks: int) -> bool:
    """Whether each block of the coarser grid is what the next few blocks of the finer grid make.

    Only then a device can slice its block to a finer one, or a group gather their blocks to a coarser one, without
    asking anyone else. Where the fewer blocks divide the size it is always so; of 5 elements in 2 and in 4 blocks, cut
    at 3 and at 2 and 4, it is not.
    """
    few, many = sorted((blocks, other_blocks))
    if many % few:
        return False
    coarse, fine = block_size(size, few), block_size(size, many)
    return few == 1 or coarse >= size or fine * (many // few) == coarse
