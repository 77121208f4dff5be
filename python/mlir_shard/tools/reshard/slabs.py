# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor of any rank as rectangles: its last two dimensions are rows and columns, of one slab for each cut of others.

The columns are the last dimension, the rows that before it; what has fewer dimensions is one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product

from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box, block_size


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Rows and columns of a slab, in elements; `slab` is its number."""

    slab: int
    row: int
    column: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Slabs:
    """A tensor of `shape`; `slabs` has of each slab the part of every dimension but the last two, start and stop."""

    shape: tuple[int, ...]
    slabs: tuple[tuple[tuple[int, int], ...], ...]

    @staticmethod
    def of(layouts: Iterable[TensorLayout]) -> Slabs:
        """Slabs that no box of the layouts, which are of one tensor, is a part of."""
        layouts = tuple(layouts)
        shape = layouts[0].shape
        parts = []
        for dim, size in enumerate(shape[:-2]):
            at = {0, size}.union(*(dim_cuts(size, layout.blocks[dim]) for layout in layouts))
            parts.append(tuple(pairwise(sorted(at))) or ((0, 0),))
        return Slabs(shape, tuple(product(*parts)))

    @property
    def rows(self) -> int:
        """The rows of a slab."""
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def columns(self) -> int:
        """The columns of a slab."""
        return self.shape[-1] if self.shape else 1

    def rectangles(self, box: Box) -> Iterator[Rectangle]:
        """What a box is on the slabs: one rectangle on each of some of them, none where it is empty."""
        if box.is_empty:
            return
        start, size = (0, 0, *box.start)[-2:], (1, 1, *box.size)[-2:]
        leading = tuple(zip(box.start, box.stop, strict=True))[:-2]
        for number, slab in enumerate(self.slabs):
            if all(begin <= first and last <= end for (begin, end), (first, last) in zip(leading, slab, strict=True)):
                yield Rectangle(number, *start, *size)


def dim_cuts(size: int, blocks: int) -> range:
    """Where a dimension is cut in blocks: the start of every block that is not empty."""
    return range(0, size, max(block_size(size, blocks), 1))
