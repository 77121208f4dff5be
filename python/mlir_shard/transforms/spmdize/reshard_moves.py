# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The moves that bring a tensor from one placement on the grid of devices to another, found once for equal tensors.

Moves are those that the shard dialect has collectives for. The cheapest sequence of them is searched for where more
than one step is needed; reducing, gathering and slicing is what remains where the search comes to no end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush

from mlir_shard.resharding import gather_slice
from mlir_shard.resharding.cost_model import CostModel
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.search_space import Cost, Kind, SearchSpace, State
from mlir_shard.resharding.steps import GridAxes, Move, Placement, Together
from mlir_shard.resharding.tiles import blocks_nest
from mlir_shard.resharding.way_moves import WaySteps, in_fewer_moves, move_between, placement_of
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.relocation import Relocation

Shape = tuple[int, ...]

MOST_STATES = 300
"""The placements that a search looks at before it settles for what always works."""

MOST_AXES = 6
"""On grids of more axes than these nothing is searched for: there are too many placements."""


@dataclass(frozen=True, slots=True)
class Resharding:
    """The moves of a tensor of `shape` that lies at `source`, between what brings blocks from and to another order."""

    source: Placement
    moves: tuple[Move, ...]
    shape: Shape
    arrival: Relocation | None = None
    departure: Relocation | None = None


class ReshardMoves:
    """Finds moves on one grid."""

    def __init__(self, grid: DeviceGrid, cost_model: CostModel | None = None) -> None:
        self._grid = Grid(grid.mesh, grid.atoms)
        self._model = cost_model or CostModel()
        self._found: dict[tuple[Placement, Placement, Shape, int], Resharding | None] = {}

    def between(self, source: Placement, target: Placement, shape: Shape, element_size: int) -> Resharding | None:
        """The moves for a tensor of `shape`, with elements of `element_size` bytes; None where nothing has to move.

        NoPlan where the target is partial and the source is not.
        """
        if source == target:
            return None
        key = source, target, shape, element_size
        if key not in self._found:
            source, target = map(self._without_single_devices, (source, target))
            moves = self._moves(source, target, shape, element_size)
            self._found[key] = Resharding(source, moves, shape) if moves else None
        return self._found[key]

    def _moves(self, source: Placement, target: Placement, shape: Shape, element_size: int) -> tuple[Move, ...]:

        def nests(dim: int, old: GridAxes, new: GridAxes) -> bool:
            return blocks_nest(shape[dim], *map(self._grid.num_devices, (old, new)))

        plain = gather_slice.plan(source, target, nests)
        if len(plain) <= 1 or len(self._grid.atoms) > MOST_AXES or 0 in shape:
            return plain
        kept = target.unreduced
        tensor = GridTensor(self._grid, shape, element_size)
        reduced = tuple(axis for axis in source.unreduced if axis not in kept)
        start, end = State(source.dims, reduced), State(target.dims, ())
        space = SearchSpace(tensor, self._model, kept, None, 0)
        way = _cheapest(space, start, end)
        if way is None:
            return plain
        moves: list[Move] = []
        before = source
        for kind, state in in_fewer_moves(start, way, space):
            after = placement_of(state, kept, source)
            move = move_between(kind, before, after)
            moves += move.steps if isinstance(move, Together) else (move,)
            before = after
        return tuple(moves)

    def _without_single_devices(self, placement: Placement) -> Placement:
        sizes = self._grid.sizes
        if 1 not in sizes:
            return placement
        dims = tuple(tuple(axis for axis in axes if sizes[axis] > 1) for axes in placement.dims)
        return replace(placement, dims=dims, unreduced=tuple(axis for axis in placement.unreduced if sizes[axis] > 1))


def _cheapest(space: SearchSpace, start: State, end: State) -> WaySteps | None:
    """The cheapest way by moves within groups of devices; None where too many states are nearer than the end."""
    found: dict[State, tuple[State, Kind] | None] = {}
    count = 0
    left: list[tuple[Cost, int, State, tuple[State, Kind] | None]] = [((0.0, 0.0), 0, start, None)]
    while left and len(found) < MOST_STATES:
        cost, _, state, arrived = heappop(left)
        if state in found:
            continue
        found[state] = arrived
        if state == end:
            return _steps_to(end, found)
        for edge in space.edges(state):
            if edge.after not in found:
                # Of equals the first one first: the same way on every process.
                count += 1
                total = cost[0] + edge.cost[0], cost[1] + edge.cost[1]
                heappush(left, (total, count, edge.after, (state, edge.kind)))
    return None


def _steps_to(end: State, found: dict[State, tuple[State, Kind] | None]) -> WaySteps:
    steps = []
    state = end
    while (arrived := found[state]) is not None:
        steps.append((arrived[1], state))
        state = arrived[0]
    return tuple(reversed(steps))
