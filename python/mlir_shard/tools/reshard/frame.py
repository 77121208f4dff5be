# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a tensor is drawn: its slabs in rows, in the proportions of its elements as far as these can be seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir_shard.sharding.layout import Box
from mlir_shard.tools.reshard.slabs import Slabs

MOST_SLABS = 12
"""How many slabs are drawn; the others are counted."""

_LEAST_SIDE = 3.0
_LEAST_RATIO = 0.5
_MOST_RATIO = 2.5


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of a picture, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Frame:
    """The slabs of a tensor in rows of `per_row`, the first at `x` and `y`, each so wide and high, in pixels."""

    slabs: Slabs
    per_row: int
    x: float
    y: float
    width: float
    height: float
    gap: float
    row_gap: float

    @staticmethod
    def within(slabs: Slabs, width: float, height: float, gap: float, row_gap: float) -> Frame:
        """The frame with the largest slabs that is of at most this width and height, at the origin."""
        count = min(len(slabs.slabs), MOST_SLABS)
        frames = []
        for per_row in range(1, count + 1):
            rows = -(-count // per_row)
            across, down = (width - gap * (per_row - 1)) / per_row, (height - row_gap * (rows - 1)) / rows
            frames.append(Frame(slabs, per_row, 0, 0, *_fitted(slabs, across, down), gap, row_gap))
        return max(frames, key=lambda frame: frame.width * frame.height)

    def at(self, x: float, y: float) -> Frame:
        """The frame somewhere else."""
        return replace(self, x=x, y=y)

    @property
    def drawn_slabs(self) -> int:
        """How many slabs are drawn."""
        return min(len(self.slabs.slabs), MOST_SLABS)

    @property
    def total_width(self) -> float:
        """The width of all slabs that are drawn."""
        return self.per_row * (self.width + self.gap) - self.gap

    @property
    def total_height(self) -> float:
        """The height of all slabs that are drawn."""
        return -(-self.drawn_slabs // self.per_row) * (self.height + self.row_gap) - self.row_gap

    def slab(self, number: int) -> Area:
        """A whole slab."""
        row, column = divmod(number, self.per_row)
        x, y = self.x + column * (self.width + self.gap), self.y + row * (self.height + self.row_gap)
        return Area(x, y, self.width, self.height)

    def areas(self, box: Box) -> tuple[Area, ...]:
        """A box of the tensor, on each slab that is drawn and has a part of it; of a size that can be seen."""
        across, down = self.width / max(self.slabs.columns, 1), self.height / max(self.slabs.rows, 1)
        result = []
        for part in self.slabs.rectangles(box):
            if part.slab < MOST_SLABS:
                slab = self.slab(part.slab)
                width, height = max(part.columns * across, _LEAST_SIDE), max(part.rows * down, _LEAST_SIDE)
                x = min(slab.x + part.column * across, slab.x + slab.width - width)
                y = min(slab.y + part.row * down, slab.y + slab.height - height)
                result.append(Area(x, y, width, height))
        return tuple(result)


def _fitted(slabs: Slabs, width: float, height: float) -> tuple[float, float]:
    """The largest slab within this width and height."""
    width, height = max(width, _LEAST_SIDE), max(height, _LEAST_SIDE)
    if len(slabs.shape) < 2:
        return width, min(height, max(width / 6, 16))
    ratio = min(max(max(slabs.columns, 1) / max(slabs.rows, 1), _LEAST_RATIO), _MOST_RATIO)
    width = min(width, height * ratio)
    return width, width / ratio
