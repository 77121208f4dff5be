# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The moves that reshard a tensor on the grid of devices, planned once for equal tensors.

Also permutations of devices for shards that enter or leave a function in the order of devices of a mesh.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mlir_shard.deferred import numpy as np
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.greedy_plan import together
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_search import Kind, move_between
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import without_single_devices
from mlir_shard.resharding.planner import shared_planner
from mlir_shard.resharding.steps import AllReduce, AllSlice, DirectExchange, GridAxes, Move, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.layout import device_array
from mlir_shard.sharding.mesh import MOST_DEVICES, TooManyDevicesError
from mlir_shard.transforms.device_grid import DeviceGrid

if TYPE_CHECKING:
    import numpy.typing as npt

Shape = tuple[int, ...]
_Numbers: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Relocation:
    """A permutation of devices: each process gets the local tensor of process `source[process]`."""

    source: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlacedMove:
    """A move on the grid, and the placement after it.

    `between` has the layouts of a direct exchange that the grid cannot express: from a mesh to one of other devices, or
    on one that is not part of the grid.
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
    """Returns the resharding by one direct exchange."""
    return Resharding(source, (PlacedMove(DirectExchange(target), target, between),), shape)


class NoPlan(Exception):
    """Raised if no moves lead from the source to the target; the message has the reason."""


class GridReshards:
    """Plans reshards on one grid, whose axes are not split further."""

    def __init__(self, grid: DeviceGrid) -> None:
        self._grid = grid
        self._planner = shared_planner(CostModel(), uses_direct_exchange=False, splits_axes=False)
        self._found: dict[tuple[Placement, Placement, Shape, int], Resharding | None] = {}
        self._slices: dict[tuple[Placement, Shape], Resharding | None] = {}

    def between(self, source: Placement, target: Placement, shape: Shape, element_size: int) -> Resharding | None:
        """Returns the moves of a tensor of `shape`, with elements of `element_size` bytes; None if nothing has to move.

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

    def slices(self, target: Placement, shape: Shape) -> Resharding | None:
        """Returns the slice by which each device gets its shard of a replicated tensor, without communication."""
        key = target, shape
        if key not in self._slices:
            self._slices[key] = self._sliced(target, shape)
        return self._slices[key]

    def _sliced(self, target: Placement, shape: Shape) -> Resharding | None:
        if (mesh := self._grid.separate_mesh(target)) is not None:
            return self._on_separate_mesh(mesh, Placement(((),) * len(shape)), target, shape)
        sizes = self._grid.sizes
        return sliced(tuple(tuple(axis for axis in axes if sizes[axis] > 1) for axes in target.dims), target, shape)

    def by(
        self, kind: Kind, source: Placement, target: Placement, shape: Shape, element_size: int
    ) -> Resharding | None:
        """Returns the same as `between`, but a single move of this kind if one leads to the target."""
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
        start = source._replace(unreduced=target.unreduced, reduction=target.reduction)
        reduced = tuple(axis for axis in source.unreduced if axis not in target.unreduced)
        moves = [PlacedMove(AllReduce(reduced, source.reduction), start)] if reduced else []
        if start.dims != target.dims:
            between = (self._grid.layout_on(mesh, start, shape), self._grid.layout_on(mesh, target, shape))
            moves.append(PlacedMove(DirectExchange(target), target, between))
        if target.unreduced and start.dims != target.dims:
            raise NoPlan(
                f"partial values on mesh {mesh}, which is not part of the grid, must be reduced before the exchange"
            )
        return Resharding(source, tuple(moves), shape)

    def _moves(self, source: Placement, target: Placement, shape: Shape, element_size: int) -> tuple[PlacedMove, ...]:
        try:
            layouts = self._grid.layout(source, shape), self._grid.layout(target, shape)
            if (mesh := layouts[0].mesh).total_size > MOST_DEVICES:
                # The bytes that uneven shards receive are counted device by device.
                raise TooManyDevicesError(mesh)
            plan = self._planner.plan(*layouts, element_size)
        except ValueError as error:
            raise NoPlan(str(error)) from error
        on_mesh = Grid.of(mesh, ())
        return tuple(PlacedMove(step.move, on_mesh.placement(step.after.sharding)) for step in plan.steps)


def sliced(dims: Sequence[GridAxes], target: Placement, shape: Shape) -> Resharding | None:
    """Returns the slice of a replicated tensor along these axes of its dimensions; None without axes."""
    move = together([AllSlice(dim, axes) for dim, axes in enumerate(dims) if axes])
    return None if move is None else Resharding(Placement(((),) * len(dims)), (PlacedMove(move, target),), shape)


def relocated(
    values: Sequence[Any],
    reshards: Sequence[Resharding | None],
    placements: Sequence[Placement],
    meshes: Sequence[Mesh | None],
    grid: DeviceGrid,
    *,
    arrives: bool,
) -> tuple[Resharding | None, ...]:
    """Returns reshards with relocations from, if `arrives`, or to the order of devices of the caller's meshes."""
    if not grid.reordered:
        return tuple(reshards)
    found = []
    for value, resharding, placement, mesh in zip(values, reshards, placements, meshes, strict=True):
        relocation = None if mesh not in grid.reordered else _relocation(mesh, placement, grid, arrives=arrives)
        if relocation is not None:
            resharding = resharding or Resharding(placement, (), shape_of(value.type))
            arrival, departure = (relocation, None) if arrives else (None, relocation)
            resharding = replace(resharding, arrival=arrival, departure=departure)
        found.append(resharding)
    return tuple(found)


def _relocation(mesh: Mesh, placement: Placement, grid: DeviceGrid, *, arrives: bool) -> Relocation | None:
    """Returns the permutation between the shards of the mesh and of the grid; None if it moves nothing."""
    on_mesh, on_grid = np.argsort(device_array(mesh)), grid.processes()
    return _between(on_mesh, on_grid, placement, grid) if arrives else _between(on_grid, on_mesh, placement, grid)


def _between(held: _Numbers, wanted: _Numbers, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """Returns the permutation from held to needed shards, in which a device that has its needed shard keeps it."""
    axes = tuple(axis for of_dim in placement.dims for axis in of_dim)
    has, needs = (grid.positions(axes, positions).tolist() for positions in (held, wanted))
    if has == needs:
        return None
    spare: defaultdict[int, deque[int]] = defaultdict(deque)
    for process, number in enumerate(has):
        if needs[process] != number:
            spare[number].append(process)
    senders = [process if has[process] == number else spare[number].popleft() for process, number in enumerate(needs)]
    return Relocation(tuple(senders))
