# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which axes to slice a tensor along before anything else, as that makes smaller what moves later.

A dimension takes as many blocks as the target has more than the current sharding, its capacity: beyond that the axes
would have to move on. The idea is Shardy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from math import gcd

from mlir_shard.resharding.sharding_difference import Difference, fit_in
from mlir_shard.sharding import AxisRef
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, total_size

Shape = Sequence[int | None]


def slice_axes(left: Difference, shape: Shape) -> tuple[Axes, ...]:
    """Shards `left` further along wanted axes that it is not sharded along, and returns them for each dimension.

    First where a dimension will give its axes to another one that continues them, the continuation is sliced before
    that. Then each dimension gets what it wants itself, then whatever fits. None in `shape` is a dynamic size.
    """
    mesh = left.mesh
    sizes = [
        (total_size(surplus, mesh), total_size(wanted, mesh))
        for surplus, wanted in zip(left.surplus, left.wanted, strict=True)
    ]
    capacities = [after // gcd(before, after) for before, after in sizes]
    sliced: list[Axes] = [()] * left.rank

    def slice_dim(dim: int, axes: Sequence[AxisRef]) -> None:
        sliced[dim] = add_axes_or_merge(sliced[dim], axes, mesh)
        left.append(dim, axes)

    for dim in range(left.rank):
        ahead = _slices_ahead(left, dim, shape[dim])
        if ahead is not None:
            capacities[ahead.target] //= ahead.blocks
            slice_dim(dim, ahead.axes)
            left.surplus[dim] += ahead.axes
    others: list[AxisRef] = []
    used = left.surplus_axes()
    for dim in range(left.rank):
        slice_dim(dim, _slice_in_place(left, dim, capacities, used, others))
    for dim, axes in enumerate(left.distribute([others] * left.rank, capacities, at_front=False)):
        slice_dim(dim, axes)
    return tuple(sliced)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Axes to slice in a dimension for an all-to-all to `target`, and how many blocks they make that arrive there."""

    axes: Axes
    target: int
    blocks: int


def _slices_ahead(left: Difference, dim: int, size: int | None) -> _Ahead | None:
    """What to slice along in `dim` so that one all-to-all takes its axes, with those that follow, to where they belong.

    Only where nothing else has to be exchanged in the two dimensions, and the dimension divides evenly.
    """
    surplus, mesh = left.surplus[dim], left.mesh
    places = left.wanted_places()
    if not surplus or left.wanted[dim] or surplus[-1] not in places:
        return None
    place = places[surplus[-1]]
    wanted = left.wanted[place.dim]
    used = left.surplus_axes()
    following = tuple(takewhile(lambda axis: axis not in used, wanted[place.index + 1 :]))
    if left.surplus[place.dim] or not following:
        return None
    pairs = zip(reversed(surplus), reversed(wanted[: place.index + 1]), strict=False)
    moving = [axis for axis, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    staying = surplus[: len(surplus) - len(moving)]
    if any(axis in places and places[axis].dim == place.dim for axis in staying):
        return None
    if size is not None and size % total_size(chain(left.current[dim], following), mesh):
        return None
    return _Ahead(following, place.dim, total_size(chain(moving, following), mesh))


def _slice_in_place(
    left: Difference, dim: int, capacities: list[int], used: frozenset[AxisRef], others: list[AxisRef]
) -> list[AxisRef]:
    """Takes the axes that a dimension wants, as far as its capacity goes; those that do not fit go to `others`."""
    taken: list[AxisRef] = []
    wanted: list[AxisRef] = []
    for axis in left.wanted[dim]:
        fit = None if axis in used else fit_in(axis, capacities[dim], left.mesh)
        if fit is None:
            wanted.append(axis)
            others += [] if axis in used else [axis]
            continue
        capacities[dim] = fit.capacity
        taken.append(fit.within)
        if wanted or left.surplus[dim]:
            left.surplus[dim].append(fit.within)
            wanted.append(fit.within)
        if fit.rest is not None:
            wanted.append(fit.rest)
            others.append(fit.rest)
    left.wanted[dim] = wanted
    return taken
