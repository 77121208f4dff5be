# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The seed plan with one permutation of devices, after which all-to-alls and gathers bring all axes to their places."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd, prod

from mlir_shard.resharding.steps import (
    AllGather,
    AllSlice,
    AllToAll,
    CollectivePermute,
    GridAxes,
    Move,
    Placement,
    Together,
)

_Lists = list[list[int]]


@lru_cache(maxsize=4096)
def permuted_plans(
    start: Placement, end: Placement, sizes: tuple[int, ...], groups: tuple[int, ...]
) -> tuple[tuple[Move, ...], ...]:
    """Returns plans on a grid with axes of these prime sizes; none if values are reduced, or no all-to-alls fit.

    There is a plan for each number in `groups` that leads to a different one: an all-to-all along several axes is
    between at most that many devices. A plan may not be possible, as shards may not nest.
    """
    if start.unreduced != end.unreduced:
        return ()
    counts = [prod(sizes[axis] for axis in axes) for axes in end.dims]
    own = _sliced(start, end, counts, sizes)
    wanted = [prod(sizes[axis] for axis in axes) for axes in own]
    last = _before_gather(end, own, sizes)
    added = [tuple(axes[len(old) :]) for old, axes in zip(start.dims, own, strict=True)]
    slices = _together([AllSlice(dim, axes) for dim, axes in enumerate(added) if axes])
    surplus = [tuple(axes[len(kept) :]) for axes, kept in zip(last, end.dims, strict=True)]
    gathers = _together([AllGather(dim, axes) for dim, axes in enumerate(surplus) if axes])
    found: list[tuple[Move, ...]] = []
    for most_devices in groups:
        taken_back = _taken_back(last, wanted, sizes, most_devices)
        if taken_back is None:
            continue
        first, moved = taken_back
        permutation = [] if first == own else [CollectivePermute(tuple(map(tuple, first)))]
        moves = (*slices, *permutation, *reversed(moved), *gathers)
        if moves not in found:
            found.append(moves)
    return tuple(found)


def _sliced(start: Placement, end: Placement, counts: list[int], sizes: tuple[int, ...]) -> _Lists:
    """Returns the axes of `start` and free axes, wanted ones first, until there are as many shards as at the end."""
    own = [list(axes) for axes in start.dims]
    used = {axis for axes in own for axis in axes}.union(start.unreduced)
    free = [axis for axis, size in enumerate(sizes) if size > 1 and axis not in used]
    for is_any in (False, True):
        for dim, axes in enumerate(own):
            likely = [axis for axis in end.dims[dim] if axis in free]
            for axis in (*likely, *(axis for axis in free if axis not in likely)):
                in_dim, in_all = prod(sizes[one] for one in axes), prod(sizes[one] for of in own for one in of)
                has, target = (in_all, prod(counts)) if is_any else (in_dim, counts[dim])
                is_short = target // gcd(has, target) % sizes[axis] == 0
                if is_short and prod(counts) // gcd(in_all, prod(counts)) % sizes[axis] == 0:
                    axes.append(axis)
                    free.remove(axis)
    return own


def _before_gather(end: Placement, own: _Lists, sizes: tuple[int, ...]) -> _Lists:
    """Returns the axes of `end` and free ones, until there are as many shards as in `own`, if there are too few."""
    last = [list(axes) for axes in end.dims]
    used = {axis for axes in last for axis in axes}.union(end.unreduced)
    free = [axis for axis, size in enumerate(sizes) if size > 1 and axis not in used]
    total = prod(sizes[axis] for axes in own for axis in axes)
    for axis in free:
        for dim, axes in enumerate(own):
            wanted, has = prod(sizes[one] for one in axes), prod(sizes[one] for one in last[dim])
            in_all = prod(sizes[one] for of in last for one in of)
            if wanted // gcd(has, wanted) % sizes[axis] == 0 and total // gcd(in_all, total) % sizes[axis] == 0:
                last[dim].append(axis)
                break
    return last


def _taken_back(
    last: _Lists, wanted: list[int], sizes: tuple[int, ...], most_devices: int
) -> tuple[_Lists, list[AllToAll]] | None:
    """Returns a placement with `wanted` shards, and the all-to-alls from it to `last`, the last one first.

    Returns None if no such all-to-alls are found.
    """
    dims = [list(axes) for axes in last]
    moved: list[AllToAll] = []
    while True:
        counts = [prod(sizes[axis] for axis in axes) for axes in dims]
        if counts == wanted:
            return dims, moved
        surplus = [has // gcd(has, want) for has, want in zip(counts, wanted, strict=True)]
        lacking = [want // gcd(has, want) for has, want in zip(counts, wanted, strict=True)]
        choices = [
            (prod(sizes[axis] for axis in axes), source, target, axes)
            for source, target in _pairs(len(dims))
            if (axes := _movable(dims[source], gcd(surplus[source], lacking[target]), sizes, most_devices))
        ]
        if not choices:
            return None
        _, source, target, axes = max(choices)
        del dims[source][-len(axes) :]
        dims[target] += axes
        moved.append(AllToAll(axes, target, source))


def _pairs(rank: int) -> Iterator[tuple[int, int]]:
    return ((one, other) for one in range(rank) for other in range(rank) if one != other)


def _movable(axes: list[int], count: int, sizes: tuple[int, ...], most_devices: int) -> GridAxes:
    """Returns the longest suffix of axes whose shards divide `count`; several axes have at most `most_devices`."""
    length, devices = 0, 1
    while length < len(axes) and count % (size := sizes[axes[-length - 1]]) == 0:
        devices *= size
        if length and devices > most_devices:
            break
        count //= size
        length += 1
    return tuple(axes[len(axes) - length :])


def _together(steps: list[AllSlice] | list[AllGather]) -> list[Move]:
    if len(steps) > 1:
        return [Together(tuple(steps))]
    return list(steps)
