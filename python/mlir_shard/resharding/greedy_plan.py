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
    """Whether an exchange brings `left` closer to its target.

    It does where a dimension can get what it wants for what it has, where axes that go to one dimension are not
    together or not in order, where an axis that only has to go is behind one that moves, and where an axis that is
    wanted can take the place of one that is not.
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
    """Whether the surplus axes of `dim` that go to some dimension, or stay, are not as they should be there."""
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
    """Gives the dimensions other surplus axes; returns whether it can, and changes nothing if not.

    What is wanted in a dimension comes first, then what is wanted elsewhere, at the end, where an all-to-all can take
    it. What fills the rest has to be gathered later and is in front, if possible where it was.
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
    """Puts what a dimension wants in the place of its surplus, and returns the surplus that is wanted nowhere.

    What has lost its place to wanted axes is at the end of it.
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
    """The collectives from `source` to `target`; the last one has the dimensions of `target`.

    `shape` is that of the global tensor, with None for dynamic sizes. `mesh` is the one of both but for the order of
    the devices, which is another where the two refer to different meshes. The shardings must be of one rank, and
    unreduced along the same axes. None where both shard alike.
    """
    return tuple(_GreedyPlan(source, target, shape, mesh).steps())


# Shardy stops after two, which is enough where sizes are powers of two; hardly ever is a third not enough.
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
        """All steps, in order."""
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
        # Where several dimensions go to one, they go in the order in which it wants them, if that can be.
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
        """Slices each dimension along all that it wants, where nothing is surplus."""
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
        """Gathers that many of the last axes of each dimension."""
        removed = [self._left.remove(dim, count) for dim, count in enumerate(counts)]
        axes_per_dim = tuple(add_axes_or_merge((), axes, self._mesh) for axes in removed)
        if any(axes_per_dim):
            self._steps.append(GatherAlong(axes_per_dim, self._sharding()))


@dataclass(frozen=True, slots=True)
class _Move:
    count: int
    tgt_dim: int


def _next_move(left: Difference, dim: int, only_in_place: bool) -> _Move | None:
    """How many of the last axes of a dimension go to one other dimension, and to which."""
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
    """How many axes there are from the first one on that no split of its mesh axis has together with one of the goal's.

    A mesh axis of size 6 is 2 times 3 or 3 times 2 devices, and shards along a 2 are none along a 3.
    """
    fits = takewhile(lambda axis: all(axis.can_coexist(other) for other in goal), axes)
    return len(axes) - sum(1 for _ in fits)


def greedy_cost(
    source: TensorLayout, steps: Sequence[CollectiveStep], element_size: int, model: CostModel, reduced: Axes = ()
) -> float:
    """What an all-reduce along `reduced`, and steps after it, cost from `source`, in units of the model's objective.

    ValueError where one of the collectives is none of even blocks, or goes to another mesh.
    """
    axes = chain(_axes(source.sharding), reduced, *(_axes(step.sharding) for step in steps))
    tensor = GridTensor(Grid.of(source.mesh, axes), source.shape, element_size)
    before = without_single_devices(tensor.grid, tensor.grid.placement(source.sharding))
    moves: list[Move] = []
    if along := several_devices(tensor.grid, reduced):
        moves.append(AllReduce(tuple(sorted(along)), source.sharding.reduction_op))
    for step in steps:
        if step.sharding.mesh_or_ref != source.sharding.mesh_or_ref:
            raise ValueError(f"the plan goes from the mesh of {source.sharding} to that of {step.sharding}")
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
    """Returns the steps as one move; None if there are none."""
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
