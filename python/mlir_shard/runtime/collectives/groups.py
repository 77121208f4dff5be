# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Device groups of collectives, given by grid axes or by lists, and the position of each device in its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import shard
from mlir_shard.ir.array_elements import elements
from mlir_shard.passes import diagnostic
from mlir_shard.runtime.collectives import library

_shard = host.dialect("shard")


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """The devices that differ only along `axes` of a grid, given by its name and shape; no axis has size 1.

    The first axis is the outermost in the order of the group, regardless of its position in the grid.
    """

    grid: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @staticmethod
    def along(grid: str, shape: tuple[int, ...], axes: Sequence[int]) -> DeviceGroup:
        """Returns the group along `axes`, of which those of size 1 are dropped."""
        return DeviceGroup(grid, shape, tuple(axis for axis in axes if shape[axis] != 1))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each axis of the group."""
        return tuple(self.shape[axis] for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of devices in one group."""
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
        """Returns this device's position along each axis of the group."""
        return shard.process_index(self.grid, self.axes) if self.axes else []

    def colour_and_key(self) -> tuple[Any, Any]:
        """Returns the number of this device's group and the device's position in it, as i32."""
        others, colour = self.others, index.constant(0)
        if others:
            colour = index.linear(shard.process_index(self.grid, others), [self.shape[axis] for axis in others])
        key = index.linear(self.own_coordinates(), self.sizes)
        return index.to_integer(colour, 32), index.to_integer(key, 32)

    def own_rank(self) -> Any:
        """Returns this device's position in the grid."""
        return _shard.process_linear_index(grid=self.grid)

    def rank_at(self, rank: Any, coordinates: Sequence[Any], target: Sequence[Any]) -> Any:
        """Returns the position in the grid of the device at `target` in the group where `rank` is at `coordinates`."""
        for axis, here, there in zip(self.axes, coordinates, target, strict=True):
            steps = index.subtract(there, here)
            rank = index.add(rank, index.multiply(steps, index.constant(prod(self.shape[axis + 1 :]))))
        return rank


_cf = host.dialect("cf")


def named(op: Any, attribute: str) -> list[int | None] | None:
    """Returns the multi-index along the operation's axes, with None for dynamic indices; None without the attribute."""
    if attribute not in op.attributes:
        return None
    return [None if number == shard.DYNAMIC else number for number in elements(op.attributes[attribute])]


def coordinates(op: Any, attribute: str, shape: Sequence[int]) -> list[Any]:
    """Returns the multi-index without axes of size 1, as values; the program aborts if one is out of range."""
    numbers = named(op, attribute) or []
    dynamic = iter(list(op.operands)[1:])
    found: list[Any] = []
    for axis, number in zip(shard.grid_axes(op), numbers, strict=True):
        value = index.constant(number) if number is not None else next(dynamic)
        if number is None:
            size = shape[axis]
            within = index.within(value, size)
            demand(within, op, f"the {attribute} of '{op.name}' is not in 0..{size - 1} along the grid axis {axis}")
        if shape[axis] != 1:
            found.append(value)
    return found


def demand(condition: Any, op: Any, message: str) -> None:
    """Builds an assertion that aborts the program with a message and the location of `op` unless a condition holds."""
    _cf.AssertOp(condition, ir.StringAttr.get(str(diagnostic.at("error", message, op.location))))


_arith = host.dialect("arith")
_tensor = host.dialect("tensor")


@dataclass(frozen=True, slots=True)
class ListedGroups:
    """The ranks of each group in its order. Each of `ranks` ranks is in at most one; a rank in none is alone."""

    groups: tuple[tuple[int, ...], ...]
    ranks: int

    @property
    def size(self) -> int:
        """The number of devices in the largest group."""
        return max(map(len, self.groups), default=1)

    @property
    def is_even(self) -> bool:
        """Whether all groups have the same size, and every device is in a group."""
        return sum(map(len, self.groups)) == self.ranks and all(len(group) == self.size for group in self.groups)

    @property
    def is_world(self) -> bool:
        """Whether there is one group, in the order of the ranks."""
        return self.groups == (tuple(range(self.ranks)),)

    def sizes(self) -> list[int]:
        """Returns the number of devices in the group of each rank."""
        found = [1] * self.ranks
        for group in self.groups:
            for rank in group:
                found[rank] = len(group)
        return found

    def colour_and_key(self) -> tuple[Any, Any]:
        """Returns the number of this rank's group and the rank's position in it, as i32."""
        colours, keys = [len(self.groups) + rank for rank in range(self.ranks)], [0] * self.ranks
        for colour, group in enumerate(self.groups):
            for key, rank in enumerate(group):
                colours[rank], keys[rank] = colour, key
        return of_own_rank(colours), of_own_rank(keys)


Group = DeviceGroup | ListedGroups


def of_own_rank(numbers: Sequence[int]) -> Any:
    """Returns this rank's entry of numbers of 32 bits, one for each rank, at the current insertion point."""
    element = ir.IntegerType.get_signless(32)
    type_ = ir.RankedTensorType.get([len(numbers)], element)
    entries = [ir.IntegerAttr.get(element, number) for number in numbers]
    table = _arith.ConstantOp(type_, ir.DenseElementsAttr.get(entries, type_)).result
    return _tensor.ExtractOp(table, [index.of_integer(library.rank())]).result
