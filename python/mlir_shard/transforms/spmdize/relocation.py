# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks that a mesh has on other devices than the grid does, where they come in and go out of a function.

A grid numbers its devices in order. A mesh whose devices are permuted otherwise than by the order of axes is taken for
one in order, as what a tensor is does not depend on where its blocks lie. Its own order matters where a caller holds
the blocks: there they are gathered along as few axes as have what is needed, and every device takes out its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid


@dataclass(frozen=True, slots=True)
class Relocation:
    """Every device gets, of the local tensors of those along `axes`, that of number `source[process]`."""

    axes: GridAxes
    source: tuple[int, ...]


def arriving(mesh: Mesh, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """From where the mesh has blocks to where the grid has them; None where that is the same."""
    if mesh not in grid.reordered:
        return None
    return _between(_positions(mesh), range(mesh.total_size), placement, grid)


def leaving(mesh: Mesh, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """From where the grid has blocks to where the mesh has them; None where that is the same."""
    if mesh not in grid.reordered:
        return None
    return _between(range(mesh.total_size), _positions(mesh), placement, grid)


def _positions(mesh: Mesh) -> list[int]:
    """The position in the mesh of each device."""
    found = [0] * mesh.total_size
    for position, device in enumerate(mesh.devices):
        found[device] = position
    return found


def _between(held: Sequence[int], wanted: Sequence[int], placement: Placement, grid: DeviceGrid) -> Relocation | None:
    def blocks(positions: Sequence[int]) -> list[tuple[int, ...]]:
        return [tuple(grid.position(axes, position) for axes in placement.dims) for position in positions]

    has, needs = blocks(held), blocks(wanted)
    if has == needs:
        return None
    every_axis = range(len(grid.shape))
    by_cost = sorted((axes for count in every_axis for axes in combinations(every_axis, count + 1)), key=grid.blocks)
    return next(found for axes in by_cost if (found := _within(axes, has, needs, grid)) is not None)


def _within(
    axes: GridAxes, has: Sequence[tuple[int, ...]], needs: Sequence[tuple[int, ...]], grid: DeviceGrid
) -> Relocation | None:
    """The relocation within groups of the devices along some axes; None where a group lacks a block."""
    others = tuple(axis for axis in range(len(grid.shape)) if axis not in axes)
    in_group: dict[tuple[int, tuple[int, ...]], int] = {}
    for process, block in enumerate(has):
        in_group.setdefault((grid.position(others, process), block), grid.position(axes, process))
    found = [in_group.get((grid.position(others, process), block)) for process, block in enumerate(needs)]
    source = tuple(number for number in found if number is not None)
    return Relocation(axes, source) if len(source) == len(found) else None
