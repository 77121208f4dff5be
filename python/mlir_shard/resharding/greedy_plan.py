# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardy's greedy plan: the collectives that take a tensor from one sharding to another, also as moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise, takewhile

from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import without_single_devices
from mlir_shard.resharding.sharding_difference import Difference, Place, Shape, divides_either_way, fit_in, slice_axes
from mlir_shard.resharding.sharding_steps import CollectiveStep, ExchangeShards, GatherAlong, MoveAxes, SliceAlong
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    GridAxes,
    Move,
    OneDimStep,
    Together,
)
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, total_size


def is_exchange_useful(left: Difference) -> bool:
    """Returns whether an exchange brings `left` closer to its target.

    It does if a dimension can get an axis it wants for a surplus axis, if axes that go to one dimension are not
    adjacent or not in order, if an axis that only has to be gathered is behind an axis that moves, or if a wanted axis
    can take the place of one that is not wanted.
    """
    mesh = left.mesh
    used, places = left.surplus_axes(), left.wanted_places()
    for dim, (surplus, wanted) in enumerate(zip(left.surplus, left.wanted, strict=True)):
        if surplus and wanted and divides_either_way(surplus[0].size(mesh), wanted[0].size(mesh)):
            return True
        if _is_out_of_order([places.get(axis) for axis in surplus], dim):
            return True
        if not wanted and any(one in places and other not in places for one, other in pairwise(surplus)):
            return True
    free = [axis for axis in chain.from_iterable(left.wanted) if axis not in used]
    given_up = [axis for axis in chain.from_iterable(left.surplus) if axis not in places]
    return bool(free and given_up) and divides_either_way(free[-1].size(mesh), given_up[-1].size(mesh))


def _is_out_of_order(places: list[Place | None], dim: int) -> bool:
    """Returns whether surplus axes of `dim` that go to one dimension, or stay, are not adjacent and in order."""
    seen: set[int] = set()
    for previous, place in pairwise((None, *places)):
        if place is None:
            continue
        follows = previous is not None and previous.dim == place.dim and previous.index + 1 == place.index
        if (place.dim == dim or place.dim in seen) and not follows:
            return True
        seen.add(place.dim)
    return False


def exchange(left: Difference) -> bool:
    """Replaces surplus axes of the dimensions; returns whether that is possible, and changes nothing if not.

    Axes wanted in a dimension come first. Axes wanted elsewhere are at the end, where an all-to-all can take them. Axes
    that fill the rest have to be gathered later and are in front, if possible at their old place.
    """
    mesh = left.mesh
    saved = list(left.current), [list(axes) for axes in left.surplus], [list(axes) for axes in left.wanted]
    places = left.wanted_places()
    before = [total_size(axes, mesh) for axes in left.current]
    capacities = [total_size(axes, mesh) for axes in left.surplus]
    given_up = [_given_up(left, dim, capacities, places) for dim in range(left.rank)]
    free = list(chain.from_iterable(left.wanted))
    left.distribute([free] * left.rank, capacities, at_front=False)
    left.distribute(given_up, capacities, at_front=True)
    rest = list(chain.from_iterable(given_up))
    left.distribute([rest] * left.rank, capacities, at_front=True)
    for dim, surplus in enumerate(left.surplus):
        left.append(dim, surplus)
    if [total_size(axes, mesh) for axes in left.current] == before:
        return True
    left.current, left.surplus, left.wanted = saved
    return False


def _given_up(left: Difference, dim: int, capacities: list[int], places: dict[AxisRef, Place]) -> list[AxisRef]:
    """Replaces surplus axes of a dimension by axes it wants, and returns the surplus axes that no dimension wants.

    Axes that lost their place to wanted axes are at the end.
    """
    mesh = left.mesh
    removed = left.remove(dim, len(left.surplus[dim]))
    full = capacities[dim]
    while left.wanted[dim] and (fit := fit_in(left.wanted[dim][0], capacities[dim], mesh)) is not None:
        capacities[dim] = fit.capacity
        left.append(dim, (fit.within,))
        left.wanted[dim][:1] = [] if fit.rest is None else [fit.rest]
    replaced = full // capacities[dim]
    kept = [axis for axis in removed if axis not in places]
    lost: list[AxisRef] = []
    while kept and (fit := fit_in(kept[0], replaced, mesh)) is not None:
        replaced = fit.capacity
        lost.append(fit.within)
        kept[:1] = [] if fit.rest is None else [fit.rest]
    return kept + lost


@lru_cache(maxsize=4096)
def collectives_between(
    source: TensorSharding, target: TensorSharding, shape: Shape, mesh: Mesh
) -> tuple[CollectiveStep, ...]:
    """Returns the collectives from `source` to `target`; the last one has the dimensions of `target`.

    `shape` is that of the global tensor, with None for dynamic sizes. `mesh` is the mesh of both; only the order of its
    devices may differ, if the two refer to different meshes. The shardings must have the same rank and the same
    unreduced axes. Returns no collectives if both shard the same way.
    """
    return tuple(_GreedyPlan(source, target, shape, mesh).steps())


# Shardy stops after two, which suffices for sizes that are powers of two; more than three are hardly ever needed.
MOST_ROUNDS = 3


class _GreedyPlan:
    def __init__(self, source: TensorSharding, target: TensorSharding, shape: Shape, mesh: Mesh) -> None:
        self._mesh_or_ref = source.mesh_or_ref
        self._target = target
        self._shape = shape
        self._mesh = mesh
        self._steps: list[CollectiveStep] = []
        self._start = [dim.axes for dim in source.dim_shardings]
        self._goal = [dim.axes for dim in target.dim_shardings]
        self._left = Difference(self._start, [()] * len(self._start), mesh)

    def steps(self) -> list[CollectiveStep]:
        """Returns all steps, in order."""
        goal = tuple(chain.from_iterable(self._goal))
        self._gather([_from_first_incompatible(axes, goal) for axes in self._start])
        self._left = Difference(self._left.current, self._goal, self._mesh)
        for _ in range(MOST_ROUNDS):
            if not self._is_done():
                self._round()
        self._gather([len(axes) for axes in self._left.surplus])
        self._slice_what_is_wanted()
        return self._steps

    def _is_done(self) -> bool:
        return self._left.is_closed and self._mesh_or_ref == self._target.mesh_or_ref

    def _round(self) -> None:
        self._slice()
        has_exchanged = is_exchange_useful(self._left) and exchange(self._left)
        if has_exchanged or self._mesh_or_ref != self._target.mesh_or_ref:
            self._mesh_or_ref = self._target.mesh_or_ref
            self._steps.append(ExchangeShards(self._sharding()))
        # If several dimensions give axes to one, they do so in the order in which it wants the axes, if possible.
        self._move(only_in_place=True)
        self._move(only_in_place=False)
        places = self._left.wanted_places()
        unwanted = (takewhile(lambda axis: axis not in places, reversed(axes)) for axes in self._left.surplus)
        self._gather([sum(1 for _ in axes) for axes in unwanted])

    def _sharding(self) -> TensorSharding:
        closed = TensorSharding.closed_with(self._left.current, self._mesh_or_ref)
        return replace(closed, unreduced_axes=self._target.unreduced_axes, reduction_op=self._target.reduction_op)

    def _slice(self) -> None:
        axes_per_dim = slice_axes(self._left, self._shape)
        if any(axes_per_dim):
            self._steps.append(SliceAlong(axes_per_dim, self._sharding()))

    def _slice_what_is_wanted(self) -> None:
        """Slices each dimension along all axes it wants; no dimension may have surplus axes."""
        axes_per_dim = tuple(add_axes_or_merge((), axes, self._mesh) for axes in self._left.wanted)
        for dim, wanted in enumerate(self._left.wanted):
            self._left.arrive(dim, tuple(wanted))
        if any(axes_per_dim):
            self._steps.append(SliceAlong(axes_per_dim, self._sharding()))

    def _move(self, *, only_in_place: bool) -> None:
        for dim in range(self._left.rank):
            while (move := _next_move(self._left, dim, only_in_place)) is not None:
                axes = self._left.remove(dim, move.count)
                self._left.arrive(move.tgt_dim, axes)
                merged = add_axes_or_merge((), axes, self._mesh)
                self._steps.append(MoveAxes(merged, dim, move.tgt_dim, self._sharding()))

    def _gather(self, counts: Sequence[int]) -> None:
        """Gathers the last axes of each dimension, as many as `counts` has for it."""
        removed = [self._left.remove(dim, count) for dim, count in enumerate(counts)]
        axes_per_dim = tuple(add_axes_or_merge((), axes, self._mesh) for axes in removed)
        if any(axes_per_dim):
            self._steps.append(GatherAlong(axes_per_dim, self._sharding()))


@dataclass(frozen=True, slots=True)
class _Move:
    count: int
    tgt_dim: int


def _next_move(left: Difference, dim: int, only_in_place: bool) -> _Move | None:
    """Returns how many of the last axes of a dimension go to one other dimension, and to which; None if none go."""
    surplus = left.surplus[dim]
    places = left.wanted_places()
    place = places.get(surplus[-1]) if surplus else None
    if place is None or place.dim == dim:
        return None
    same = takewhile(lambda axis: axis in places and places[axis].dim == place.dim, reversed(surplus))
    count = sum(1 for _ in same)
    if only_in_place and surplus[-count:] != left.wanted[place.dim][:count]:
        return None
    return _Move(count, place.dim)


def _from_first_incompatible(axes: Axes, goal: Axes) -> int:
    """Returns the number of axes from the first one on that cannot coexist with all axes of the goal.

    Two sub-axes coexist if one split of their mesh axis has both: a mesh axis of size 6 is split in 2 times 3 or in 3
    times 2 devices, so a major sub-axis of size 2 and one of size 3 do not.
    """
    fits = takewhile(lambda axis: all(axis.can_coexist(other) for other in goal), axes)
    return len(axes) - sum(1 for _ in fits)


def greedy_cost(
    source: TensorLayout, steps: Sequence[CollectiveStep], element_size: int, model: CostModel, reduced: Axes = ()
) -> float:
    """Returns the cost of an all-reduce along `reduced` and `steps` after it, in units of the model's objective.

    Raises ValueError if a step goes to another mesh, or is not possible for `source`, see `GridTensor.after`.
    """
    axes = chain(_axes(source.sharding), reduced, *(_axes(step.sharding) for step in steps))
    tensor = GridTensor(Grid.of(source.mesh, axes), source.shape, element_size)
    before = without_single_devices(tensor.grid, tensor.grid.placement(source.sharding))
    moves: list[Move] = []
    if along := several_devices(tensor.grid, reduced):
        moves.append(AllReduce(tuple(sorted(along)), source.sharding.reduction_op))
    for step in steps:
        if step.sharding.mesh_or_ref != source.sharding.mesh_or_ref:
            raise ValueError(f"the plan changes from the mesh of {source.sharding} to the mesh of {step.sharding}")
        if (move := move_of(tensor.grid, step)) is not None:
            moves.append(move)
    costs = []
    for move in moves:
        costs.append(model.cost(move, before, tensor))
        before = move.apply(before)
    if model.objective is Objective.TIME:
        return sum(cost.time for cost in costs)
    if model.objective is Objective.BYTES:
        return sum(cost.total_bytes for cost in costs)
    return max((cost.memory for cost in costs), default=0)


def move_of(grid: Grid, step: CollectiveStep) -> Move | None:
    """Returns a step of a plan as a move on a grid; None if it is along single devices only.

    Raises:
        ValueError: an axis of the step is not on the grid.
    """
    if isinstance(step, ExchangeShards):
        return CollectivePermute(without_single_devices(grid, grid.placement(step.sharding)).dims)
    if isinstance(step, MoveAxes):
        axes = several_devices(grid, step.axes)
        return AllToAll(axes, step.src_dim, step.tgt_dim) if axes else None
    kind = AllGather if isinstance(step, GatherAlong) else AllSlice
    along = [kind(dim, axes) for dim, refs in enumerate(step.axes_per_dim) if (axes := several_devices(grid, refs))]
    return together(along)


def together(steps: Sequence[OneDimStep]) -> Move | None:
    """Returns the steps as one move; None if none exist."""
    if len(steps) > 1:
        return Together(tuple(steps))
    return steps[0] if steps else None


def several_devices(grid: Grid, refs: Axes) -> GridAxes:
    """Returns the grid axes of mesh axes, without those of one device."""
    sizes = grid.sizes
    return tuple(axis for axis in grid.axes(refs) if sizes[axis] > 1)


def _axes(sharding: TensorSharding) -> Axes:
    found: list[AxisRef] = [axis for dim in sharding.dim_shardings for axis in dim.axes]
    return (*found, *sharding.unreduced_axes)
