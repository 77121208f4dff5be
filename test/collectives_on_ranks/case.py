# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One collective: its text, and its expected results for the tensors of the devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_shard.resharding.simulation import Blocks
from mlir_shard.runtime.arrays import TensorSpec
from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.layout import device_groups

Axes = tuple[int, ...]
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Grid:
    """The grid of a collective, and its axes in the order of the collective."""

    shape: tuple[int, ...]
    axes: Axes

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.axes)

    def groups(self, axes: Axes | None = None) -> Groups:
        """Returns the device groups along `axes`, by default those of the collective."""
        mesh = Mesh([(f"a{axis}", size) for axis, size in enumerate(self.shape)])
        return device_groups([AxisRef(f"a{axis}") for axis in (self.axes if axes is None else axes)], mesh)


@dataclass(frozen=True)
class Case:
    """Operations on `{a}`, on the grid `@{g}`, that name their result `%{r}` and other values `%{r}_...`.

    expected: computes the result's shards, on the devices for which it is defined, from the argument's shards. Elements
        of the argument are from `least`, 0 or 1, to `most`.
    """

    name: str
    grid: Grid
    argument: TensorSpec
    result: TensorSpec
    text: str
    expected: Callable[[Blocks], Blocks]
    least: int = 0
    most: int = 9

    def __str__(self) -> str:
        return f"{self.name} on {'x'.join(map(str, self.grid.shape))} along {list(self.grid.axes)}: {self.argument}"


def resized(spec: TensorSpec, changes: Sequence[tuple[int, float]]) -> TensorSpec:
    """Returns the type with some dimensions multiplied by factors."""
    shape = list(spec.shape)
    for dim, factor in changes:
        shape[dim] = round(shape[dim] * factor)
    return TensorSpec(tuple(shape), spec.element_type)
