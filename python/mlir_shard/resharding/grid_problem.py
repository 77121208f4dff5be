# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two layouts of a tensor as placements on a grid, from which plans between them are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from mlir_shard.resharding.cost.traffic import traffic_on
from mlir_shard.resharding.greedy_plan import collectives_between
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_search import PathSteps, State, move_between, placement_of
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import PlacedMove, without_single_devices
from mlir_shard.resharding.seed_plans import GridPlan, layout_axes, reductions
from mlir_shard.resharding.sharding_steps import SliceAlong
from mlir_shard.resharding.steps import DirectExchange, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout

MOST_TO_SEARCH = 16384
"""The most devices for which a search is made if the elements that each device receives have to be counted."""


@dataclass(frozen=True)
class GridProblem:
    """Two layouts of a tensor as placements on a grid."""

    source: TensorLayout
    target: TensorLayout
    element_size: int
    grid: Grid

    @staticmethod
    def of(source: TensorLayout, target: TensorLayout, element_size: int) -> GridProblem:
        """Returns the problem on the coarsest grid that has the axes of both layouts."""
        grid = Grid.of(source.mesh, layout_axes(source) + layout_axes(target))
        return GridProblem(source, target, element_size, grid)

    @cached_property
    def tensor(self) -> GridTensor:
        """The tensor on the grid."""
        return GridTensor(self.grid, self.source.shape, self.element_size)

    @cached_property
    def start(self) -> Placement:
        """The placement of the source, without axes of size 1."""
        return without_single_devices(self.grid, self.grid.placement(self.source.sharding))

    @cached_property
    def end(self) -> Placement:
        """The placement of the target, without axes of size 1."""
        return without_single_devices(self.grid, self.grid.placement(self.target.sharding))

    @cached_property
    def from_state(self) -> State:
        """The state at which a search begins."""
        return State(self.start.dims, tuple(axis for axis in self.start.unreduced if axis not in self.end.unreduced))

    @property
    def to_state(self) -> State:
        """The state at which a search ends."""
        return State(self.end.dims, ())

    @property
    def can_be_searched(self) -> bool:
        """Whether a search is short: it counts the elements of each device only if there are few devices."""
        traffic = traffic_on(self.grid.sizes, self.source.shape)
        is_small = traffic.num_devices <= MOST_TO_SEARCH
        # No seed plan reduces and scatters at once.
        return is_small or bool(self.from_state.unreduced) or traffic.is_always_in_digits

    def on_finer_grid(self) -> GridProblem:
        """Returns the problem on the finest grid of the mesh, or this problem if its grid is the finest one."""
        finest = self.grid.finest()
        return self if finest == self.grid else GridProblem(self.source, self.target, self.element_size, finest)

    def plan(self, steps: PathSteps) -> GridPlan:
        """Returns the plan of the steps of a path."""
        moves: list[PlacedMove] = []
        before = self.start
        for kind, state in steps:
            after: Placement = placement_of(state, self.end.unreduced, self.start)
            moves.append((move_between(kind, before, after), after))
            before = after
        return GridPlan(self.grid, self.start, tuple(moves))

    def exchange(self) -> GridPlan:
        """Returns the plan of a direct exchange."""
        return GridPlan(self.grid, self.start, ((DirectExchange(self.end), self.end),))

    def _after_greedy_slice(self) -> Iterator[Placement]:
        """Yields the placement after the first slice of Shardy's plan for the reduced source, if it is on the grid."""
        reduced = replace(self.source.sharding, unreduced_axes=self.target.sharding.unreduced_axes)
        steps = collectives_between(reduced, self.target.sharding, self.source.shape, self.source.mesh)
        if steps and isinstance(steps[0], SliceAlong):
            # The slice may be along a part of a grid axis.
            with suppress(ValueError):
                yield self.grid.placement(steps[0].sharding)

    def reductions(self) -> Iterator[tuple[TensorLayout, GridPlan]]:
        """Yields pairs of a layout, and a plan of all reductions that leads to it."""
        for moves in reductions(self.start, self.end, self._after_greedy_slice()):
            placed = []
            before = self.start
            try:
                for move in moves:
                    before = self.tensor.after(move, before)
                    placed.append((move, before))
            except ValueError:
                # Uneven shards do not nest.
                continue
            sharding = self.grid.sharding(before, self.source.sharding.mesh_or_ref)
            reduced = TensorLayout(sharding, self.source.mesh, self.source.shape)
            yield reduced, GridPlan(self.grid, self.start, tuple(placed))
