# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The moves that reshard a tensor on the grid of devices, planned once for equal tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir_shard.passes.registry import shared
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_search import move_between
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import without_single_devices
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.search_space import Kind
from mlir_shard.resharding.steps import DirectExchange, Move, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.mesh import MOST_DEVICES, TooManyDevicesError
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.relocation import Relocation

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlacedMove:
    """A move on the grid, and the placement after it.

    `between` has the layouts of a direct exchange that the grid cannot say: from a mesh to one of other devices, or on
    one that is no part of the grid.
    """

    move: Move
    after: Placement
    between: tuple[TensorLayout, TensorLayout] | None = None


@dataclass(frozen=True, slots=True)
class Resharding:
    """The moves of a tensor of `shape` that is placed as `source`, with permutations of devices before and after."""

    source: Placement
    moves: tuple[PlacedMove, ...]
    shape: Shape
    arrival: Relocation | None = None
    departure: Relocation | None = None


def exchanged(
    source: Placement, target: Placement, shape: Shape, between: tuple[TensorLayout, TensorLayout] | None = None
) -> Resharding:
    """The direct exchange."""
    return Resharding(source, (PlacedMove(DirectExchange(target), target, between),), shape)


class NoPlan(Exception):
    """No moves lead from the source to the target; the message says why."""


class GridReshards:
    """Plans reshards on one grid, whose axes are not split further."""

    def __init__(self, grid: DeviceGrid) -> None:
        self._grid = grid
        self._planner = shared(GridReshards, lambda: Planner(uses_direct_exchange=False, splits_axes=False))
        self._found: dict[tuple[Placement, Placement, Shape, int], Resharding | None] = {}

    def between(self, source: Placement, target: Placement, shape: Shape, element_size: int) -> Resharding | None:
        """The moves for a tensor of `shape`, with elements of `element_size` bytes; None if nothing has to move.

        Raises:
            NoPlan: the target is partial and the source is not.
        """
        if source == target:
            return None
        if (mesh := self._grid.separate_mesh(source, target)) is not None:
            return self._on_separate_mesh(mesh, source, target, shape)
        key = source, target, shape, element_size
        if key not in self._found:
            moves = self._moves(source, target, shape, element_size)
            self._found[key] = Resharding(source, moves, shape) if moves else None
        return self._found[key]

    def by(
        self, kind: Kind, source: Placement, target: Placement, shape: Shape, element_size: int
    ) -> Resharding | None:
        """As `between`, by the one move of this kind where that leads to the target."""
        if source == target or self._grid.separate_mesh(source, target) is not None:
            return self.between(source, target, shape, element_size)
        tensor = GridTensor(Grid.of(self._grid.layout(source, shape).mesh, ()), shape, element_size)
        start, end = (without_single_devices(tensor.grid, one) for one in (source, target))
        try:
            move = move_between(kind, start, end)
            is_there = tensor.after(move, start) == end
        except (KeyError, ValueError):
            is_there = False
        if not is_there:
            return self.between(source, target, shape, element_size)
        return Resharding(source, (PlacedMove(move, target),), shape)

    def _on_separate_mesh(self, mesh: Mesh, source: Placement, target: Placement, shape: Shape) -> Resharding | None:
        if source.unreduced or target.unreduced:
            raise NoPlan(
                f"it would be reduced over devices of mesh {mesh}, which is no part of a grid of all "
                f"{prod(self._grid.shape)} devices of the program: let its axes divide these"
            )
        before, after = (self._grid.layout_on(mesh, placement, shape) for placement in (source, target))
        return exchanged(source, target, shape, (before, after))

    def _moves(self, source: Placement, target: Placement, shape: Shape, element_size: int) -> tuple[PlacedMove, ...]:
        try:
            layouts = self._grid.layout(source, shape), self._grid.layout(target, shape)
            if (mesh := layouts[0].mesh).total_size > MOST_DEVICES:
                # What uneven shards receive is counted device by device.
                raise TooManyDevicesError(mesh)
            plan = self._planner.plan(*layouts, element_size)
        except ValueError as error:
            raise NoPlan(str(error)) from error
        on_mesh = Grid.of(mesh, ())
        return tuple(PlacedMove(step.move, on_mesh.placement(step.after.sharding)) for step in plan.steps)
