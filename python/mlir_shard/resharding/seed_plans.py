# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that are found without a search, with which the planner compares the result of its search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, takewhile

from mlir_shard.resharding.cost.links import common_length
from mlir_shard.resharding.cost.traffic import traffic_on
from mlir_shard.resharding.greedy_plan import collectives_between, move_of, together
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.permuted_plan import permuted_plans
from mlir_shard.resharding.plan import without_single_devices
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    DirectExchange,
    GridAxes,
    Move,
    OneDimStep,
    Placement,
    ReduceScatter,
    Together,
)
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.axes import Axes

GROUPS = (1, 16, 256, 1 << 62)
"""The most devices in a group of an all-to-all; all these numbers are tried. Along one axis there may be more."""


@dataclass(frozen=True, slots=True)
class GridPlan:
    """Moves on a grid, each with the placement after it, from `start` on."""

    grid: Grid
    start: Placement
    moves: tuple[tuple[Move, Placement], ...]


@lru_cache(maxsize=4096)
def seed_plans(
    source: TensorLayout, target: TensorLayout, *, splits_axes: bool, most_messages: int
) -> tuple[GridPlan, ...]:
    """Returns the plans that are possible between layouts on one mesh, partial along the same axes; at least one.

    A direct exchange replaces a collective between uneven shards that do not nest, if devices times rounds are at most
    `most_messages`. Without `splits_axes` plans are on the coarsest grid that has the axes of both.
    """
    coarsest = Grid.of(source.mesh, layout_axes(source) + layout_axes(target))
    seen = set()
    plans = []
    for moves, grid in _possible_plans(source, target, coarsest, splits_axes):
        key = grid.atoms, tuple(moves)
        if key in seen or (not splits_axes and grid != coarsest):
            continue
        seen.add(key)
        start = _placement(grid, source)
        # The size of an element does not matter.
        placed = _placed(moves, start, GridTensor(grid, source.shape, 1), most_messages)
        if placed is not None:
            plans.append(GridPlan(grid, start, placed))
    return tuple(plans)


def _placed(
    moves: Iterable[Move], start: Placement, tensor: GridTensor, most_messages: int
) -> tuple[tuple[Move, Placement], ...] | None:
    """Returns the moves with the placements after them; None if shards do not nest and cannot be exchanged."""
    traffic = traffic_on(tensor.grid.sizes, tensor.shape)
    placed: list[tuple[Move, Placement]] = []
    before = start
    for move in moves:
        try:
            after = tensor.after(move, before)
        except ValueError:
            after = move.apply(before)
            if placed and isinstance(placed[-1][0], DirectExchange):
                # One exchange rather than two, if it is not too large.
                earlier = placed[-2][1] if len(placed) > 1 else start
                if traffic.can_exchange(earlier.dims, after.dims, most_messages):
                    placed.pop()
                    before = earlier
            if not traffic.can_exchange(before.dims, after.dims, most_messages):
                return None
            move = DirectExchange(after)
        placed.append((move, after))
        before = after
    return tuple(placed)


def layout_axes(layout: TensorLayout) -> Axes:
    """Returns all axes that a layout uses."""
    sharding = layout.sharding
    return (*(axis for dim in sharding.dim_shardings for axis in dim.axes), *sharding.unreduced_axes)


def _possible_plans(
    source: TensorLayout, target: TensorLayout, grid: Grid, splits_axes: bool
) -> Iterator[tuple[Sequence[Move], Grid]]:
    start, end = (_placement(grid, layout) for layout in (source, target))
    changed = [axes if axes == wanted else () for axes, wanted in zip(start.dims, end.dims, strict=True)]
    gathered = [*_continued(AllGather, changed, start.dims), *_continued(AllSlice, changed, end.dims)]
    yield gathered, grid
    if any(size % count for size, count in zip(source.shape, source.blocks, strict=True)):
        # Between gathers of uneven shards padding is cut off.
        yield [part for move in gathered for part in (move.steps if isinstance(move, Together) else (move,))], grid
    sliced = _with_free_axes(start, end)
    kept = [have[: common_length(have, want)] for have, want in zip(sliced.dims, end.dims, strict=True)]
    gathered = [*_continued(AllGather, kept, sliced.dims), *_continued(AllSlice, kept, end.dims)]
    yield [*_continued(AllSlice, start.dims, sliced.dims), *gathered], grid
    finest = grid.finest() if splits_axes else grid
    fine_start, fine_end = (_placement(finest, layout) for layout in (source, target))
    for permuted in permuted_plans(fine_start, fine_end, finest.sizes, GROUPS):
        yield permuted, finest
    greedy = collectives_between(source.sharding, target.sharding, source.shape, source.mesh)
    sub_axes = [axis for step in greedy for dim in step.sharding.dim_shardings for axis in dim.axes]
    fine = Grid.of(source.mesh, (*grid.atoms, *sub_axes))
    moves = [move for step in greedy if (move := move_of(fine, step)) is not None]
    # All-to-alls send fewer bytes together, and fewer messages separately.
    fused = _fused(moves)
    yield fused, fine
    if fused != moves:
        yield moves, fine


def reductions(start: Placement, end: Placement, greedy: Iterable[Placement] = ()) -> Iterator[tuple[Move, ...]]:
    """Yields moves that reduce all values that are partial at the start and not at the end.

    They reduce into replicated values; into shards along the axes with which the target, or a placement of Shardy's
    plan after an all-reduce, continues dimensions, after slices along unused axes; and into shards of one dimension.
    """
    reduced = tuple(axis for axis in start.unreduced if axis not in end.unreduced)
    yield (AllReduce(reduced, start.reduction),)
    for wanted in chain((end,), greedy):
        yield _scattering(start, wanted, reduced)
    for dim in range(len(start.dims)):
        yield (ReduceScatter(dim, reduced, start.reduction),)


def _scattering(start: Placement, wanted: Placement, reduced: GridAxes) -> tuple[Move, ...]:
    """Returns moves that reduce into shards along the axes with which `wanted` continues dimensions.

    An all-reduce reduces along the remaining axes.
    """
    sliced = _with_free_axes(start, wanted)
    scattered = list(sliced.dims)
    for dim, (have, want) in enumerate(zip(sliced.dims, wanted.dims, strict=True)):
        if want[: len(have)] == have:
            scattered[dim] = (*have, *takewhile(lambda axis: axis in reduced, want[len(have) :]))
    scatter = partial(ReduceScatter, reduction=start.reduction)
    moves = [*_continued(AllSlice, start.dims, sliced.dims), *_continued(scatter, sliced.dims, scattered)]
    used = {axis for axes in scattered for axis in axes}
    left = tuple(axis for axis in reduced if axis not in used)
    return (*moves, *([AllReduce(left, start.reduction)] if left else []))


def _with_free_axes(start: Placement, end: Placement) -> Placement:
    """Returns the start, sliced along the axes that it does not use and with which the end continues dimensions."""
    used, dims = start.used, []
    for have, want in zip(start.dims, end.dims, strict=True):
        free = takewhile(lambda axis: axis not in used, want[len(have) :]) if want[: len(have)] == have else ()
        dims.append((*have, *free))
    return start._replace(dims=tuple(dims))


def _placement(grid: Grid, layout: TensorLayout) -> Placement:
    return without_single_devices(grid, grid.placement(layout.sharding))


def _fused(moves: Sequence[Move]) -> list[Move]:
    """Returns the moves with successive all-to-alls between different dimensions as one, as Shardy fuses them."""
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


def _continued(
    step: Callable[[int, GridAxes], OneDimStep], shorter: Sequence[GridAxes], longer: Sequence[GridAxes]
) -> Iterator[Move]:
    """Yields the steps along the axes that `longer` has in addition in each dimension, as one move."""
    pairs = enumerate(zip(shorter, longer, strict=True))
    if move := together([step(dim, axes[len(kept) :]) for dim, (kept, axes) in pairs if len(axes) > len(kept)]):
        yield move
