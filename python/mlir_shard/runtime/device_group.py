# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The devices that a collective of upstream's shard dialect joins, and where each of them stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard
from mlir_shard.runtime import index_arithmetic as index

_shard = host.dialect("shard")


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Those that differ along `axes` alone, each of a size other than 1, on the grid of that name and shape.

    The first axis is the outermost in the order of the group, whatever its place in the grid.
    """

    grid: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @staticmethod
    def along(grid: str, shape: tuple[int, ...], axes: Sequence[int]) -> DeviceGroup:
        """The group along `axes`, without those of size 1."""
        return DeviceGroup(grid, shape, tuple(axis for axis in axes if shape[axis] != 1))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each axis of the group."""
        return tuple(self.shape[axis] for axis in self.axes)

    @property
    def size(self) -> int:
        """How many devices are in one group."""
        return prod(self.sizes)

    @property
    def others(self) -> tuple[int, ...]:
        """The axes along which the groups differ."""
        return tuple(axis for axis, size in enumerate(self.shape) if axis not in self.axes and size != 1)

    @property
    def is_world(self) -> bool:
        """Whether there is one group, in the order of the grid."""
        return not self.others and self.axes == tuple(sorted(self.axes))

    def own_coordinates(self) -> list[Any]:
        """This device's position along each axis of the group."""
        return shard.process_index(self.grid, self.axes) if self.axes else []

    def colour_and_key(self) -> tuple[Any, Any]:
        """The number of this device's group and its place in it, as integers of 32 bits."""
        others, colour = self.others, index.constant(0)
        if others:
            colour = index.linear(shard.process_index(self.grid, others), [self.shape[axis] for axis in others])
        key = index.linear(self.own_coordinates(), self.sizes)
        return index.to_integer(colour, 32), index.to_integer(key, 32)

    def own_rank(self) -> Any:
        """This device's position in the whole grid."""
        return _shard.process_linear_index(grid=self.grid)

    def rank_at(self, rank: Any, coordinates: Sequence[Any], target: Sequence[Any]) -> Any:
        """The position in the grid of the device at `target` in the group where `rank` is at `coordinates`."""
        for axis, here, there in zip(self.axes, coordinates, target, strict=True):
            steps = index.subtract(there, here)
            rank = index.add(rank, index.multiply(steps, index.constant(prod(self.shape[axis + 1 :]))))
        return rank
