# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that are found without a search: what the planner compares with where its search has not come to an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from mlir_shard.resharding import simple_plans
from mlir_shard.resharding.greedy_plan import collectives_between, move_of, several_devices, together
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import without_single_devices
from mlir_shard.resharding.simple_plans import permuted_course
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    GridAxes,
    Move,
    OneDimStep,
    Placement,
    ReduceScatter,
    Together,
)
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding.axes import Axes

GROUPS = (1, 16, 256, 1 << 62)
"""How many devices are tried to be in the groups of all-to-alls at most; along one axis there may be more."""


@dataclass(frozen=True, slots=True)
class Course:
    """Moves on a grid, each with the placement after it, from `start` on."""

    grid: Grid
    start: Placement
    moves: tuple[tuple[Move, Placement], ...]


def known_courses(
    source: TensorLayout, target: TensorLayout, element_size: int, *, splits_axes: bool
) -> Iterator[Course]:
    """The plans between layouts on one mesh that are possible, at least one if they share a grid.

    Without `splits_axes` they are on the coarsest grid that has the axes of both.
    """
    own_axes = layout_axes(source) + layout_axes(target)
    for moves, grid in _ways(source, target, own_axes, splits_axes):
        if not splits_axes and grid != Grid.of(source.mesh, own_axes):
            continue
        start = without_single_devices(grid, grid.placement(source.sharding))
        tensor = GridTensor(grid, source.shape, element_size)
        placed = []
        before = start
        try:
            for move in moves:
                before = tensor.after(move, before)
                placed.append((move, before))
        except ValueError:
            # Blocks that do not nest are in the way of this course.
            continue
        yield Course(grid, start, tuple(placed))


def layout_axes(layout: TensorLayout) -> Axes:
    """All axes that a layout uses."""
    sharding = layout.sharding
    return (*(axis for dim in sharding.dim_shardings for axis in dim.axes), *sharding.unreduced_axes)


def _ways(
    source: TensorLayout, target: TensorLayout, own_axes: Axes, splits_axes: bool
) -> Iterator[tuple[Sequence[Move], Grid]]:
    grid = Grid.of(source.mesh, own_axes)
    start = without_single_devices(grid, grid.placement(source.sharding))
    end = without_single_devices(grid, grid.placement(target.sharding))
    yield simple_plans.gather_slice_plan(start, end), grid
    whole = tuple(_by_way_of_whole(start, end))
    yield whole, grid
    # Between gathers of uneven shards padding is cut off.
    yield tuple(part for move in whole for part in (move.steps if isinstance(move, Together) else (move,))), grid
    yield tuple(_by_scattering(start, end)), grid
    finest = grid.finest() if splits_axes else grid
    fine_start, fine_end = (
        without_single_devices(finest, finest.placement(layout.sharding)) for layout in (source, target)
    )
    ways = {permuted_course(fine_start, fine_end, finest.sizes, most_devices) for most_devices in GROUPS}
    for permuted in sorted((way for way in ways if way is not None), key=len):
        yield permuted, finest
    reduced = reduced_axes(source, target)
    complete = replace(source.sharding, unreduced_axes=target.sharding.unreduced_axes)
    course = collectives_between(complete, target.sharding, source.shape, source.mesh)
    sub_axes = [axis for step in course for dim in step.sharding.dim_shardings for axis in dim.axes]
    fine = Grid.of(source.mesh, (*own_axes, *sub_axes))
    moves = [move for step in course if (move := move_of(fine, step)) is not None]
    moves = _fused(moves)
    if axes := several_devices(fine, reduced):
        reduction = AllReduce(tuple(sorted(axes)), source.sharding.reduction_op)
        yield [reduction, *moves], fine
        moves = _scattered(reduction, moves)
    yield moves, fine


def _scattered(reduction: AllReduce, moves: Sequence[Move]) -> list[Move]:
    """The all-reduce and the moves, with slices along its axes at once as one reduce-scatter."""
    first_move = moves[0] if moves else None
    slices = first_move.steps if isinstance(first_move, Together) else (first_move,)
    own = [one for one in slices if isinstance(one, AllSlice) and set(one.axes) <= set(reduction.axes)]
    scatters = tuple(ReduceScatter(one.dim, one.axes, reduction.reduction) for one in own)
    if not scatters:
        return [reduction, *moves]
    scattered = {axis for one in scatters for axis in one.axes}
    left = tuple(axis for axis in reduction.axes if axis not in scattered)
    others = tuple(one for one in slices if isinstance(one, AllSlice) and one not in own)
    first: list[Move] = [scatters[0] if len(scatters) == 1 else Together(scatters)]
    first += [AllReduce(left, reduction.reduction)] if left else []
    first += [] if not others else [others[0] if len(others) == 1 else Together(others)]
    return [*first, *moves[1:]]


def _fused(moves: Sequence[Move]) -> list[Move]:
    """The moves with all-to-alls in a row between other dimensions as one, as Shardy's canonicalization has them."""
    fused: list[Move] = []
    for move in moves:
        before = fused[-1] if fused else None
        parts = [
            part
            for one in (before, move)
            for part in (one.steps if isinstance(one, Together) else (one,))
            if isinstance(part, AllToAll)
        ]
        dims = [dim for part in parts for dim in (part.source_dim, part.target_dim)]
        if isinstance(move, AllToAll) and len(parts) > 1 and len(set(dims)) == len(dims):
            fused[-1] = Together(tuple(parts))
        else:
            fused.append(move)
    return fused


def _by_way_of_whole(start: Placement, end: Placement) -> Iterator[Move]:
    """Every dimension that changes is gathered whole and sliced again, which uneven blocks do not forbid."""
    reduced = tuple(axis for axis in start.unreduced if axis not in end.unreduced)
    if reduced:
        yield AllReduce(reduced, start.reduction)
    changed = [dim for dim, axes in enumerate(start.dims) if axes != end.dims[dim]]
    if gathers := together([AllGather(dim, start.dims[dim]) for dim in changed if start.dims[dim]]):
        yield gathers
    if slices := together([AllSlice(dim, end.dims[dim]) for dim in changed if end.dims[dim]]):
        yield slices


def _by_scattering(start: Placement, end: Placement) -> Iterator[Move]:
    """Partial values are scattered along the reduced axes that the target continues a dimension with, and reduced along
    the others on these smaller shards. Axes that nothing uses are sliced before."""
    reduced = tuple(axis for axis in start.unreduced if axis not in end.unreduced)
    sliced, scattered = list(start.dims), list(start.dims)
    for dim, (have, want) in enumerate(zip(start.dims, end.dims, strict=True)):
        if want[: len(have)] == have:
            free = takewhile(lambda axis: axis not in start.used, want[len(have) :])
            sliced[dim] = (*have, *free)
            axes = takewhile(lambda axis: axis in reduced, want[len(sliced[dim]) :])
            scattered[dim] = (*sliced[dim], *axes)
    yield from _continued(AllSlice, start.dims, sliced)
    scatter = partial(ReduceScatter, reduction=start.reduction)
    yield from _continued(scatter, sliced, scattered)
    used = {axis for axes in scattered for axis in axes}
    if left := tuple(axis for axis in reduced if axis not in used):
        yield AllReduce(left, start.reduction)
    kept = [axes if want[: len(axes)] == axes else () for axes, want in zip(scattered, end.dims, strict=True)]
    yield from _continued(AllGather, kept, scattered)
    yield from _continued(AllSlice, kept, end.dims)


def _continued(
    step: Callable[[int, GridAxes], OneDimStep], shorter: Sequence[GridAxes], longer: Sequence[GridAxes]
) -> Iterator[Move]:
    """The steps along what `longer` has more for each dimension, as one move."""
    pairs = enumerate(zip(shorter, longer, strict=True))
    if move := together([step(dim, axes[len(kept) :]) for dim, (kept, axes) in pairs if len(axes) > len(kept)]):
        yield move
