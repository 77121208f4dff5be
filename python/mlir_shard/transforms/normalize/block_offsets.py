# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where blocks of a sharded tensor begin, as upstream's `sharded_dims_offsets` says it of sdy's blocks.

In sdy a dimension of size n in k blocks has blocks of ceil(n / k), so the last may be short or empty. Upstream takes
blocks to be of one size, and others have to be said by their offsets: of each split dimension the start of every
block and the end of the last.
"""

from __future__ import annotations

from collections.abc import Sequence


def offsets_of_blocks(shape: Sequence[int], blocks: Sequence[int | None]) -> tuple[int, ...]:
    """The offsets of a tensor of static `shape` whose dimensions are in `blocks` blocks, None where not split."""
    offsets: list[int] = []
    for size, count in zip(shape, blocks, strict=True):
        if count is not None:
            block = -(-size // count)
            offsets += [min(index * block, size) for index in range(count + 1)]
    return tuple(offsets)


def has_uneven_blocks(shape: Sequence[int], blocks: Sequence[int | None]) -> bool:
    """Whether some dimension is not a multiple of its number of blocks."""
    return any(count is not None and size % count for size, count in zip(shape, blocks, strict=True))
