# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that need no search: gather and slice, which always works, and one permutation of devices.

The first reduces, gathers what the target does not keep, and slices what it adds. In the second all axes are, after
the permutation, where all-to-alls and gathers finish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd, prod

from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    GridAxes,
    Move,
    Placement,
    Step,
    Together,
)


class NoPlan(Exception):
    """There are no steps from the source to the target; the message says what is in the way."""


# Whether blocks of a dimension along some axes make those along others up, see `blocks_nest`.
Nests = Callable[[int, GridAxes, GridAxes], bool]


def gather_slice_plan(
    source: Placement, target: Placement, nests: Nests = lambda dim, old, new: True
) -> tuple[Step, ...]:
    """The steps that bring a tensor from `source` to `target`, in order.

    Slices along axes that the source does not use come first, so that what follows moves less. Where blocks are not
    even, a dimension of which they do not nest is gathered whole.
    Raises NoPlan where the target is partial along an axis that the source is not.
    """
    extra = [axis for axis in target.unreduced if axis not in source.unreduced]
    if extra:
        raise NoPlan(f"the target is unreduced along grid axes {extra}, along which the source holds whole values")
    if target.unreduced and target.reduction is not source.reduction:
        raise NoPlan(f"an unreduced {source.reduction.value} cannot become an unreduced {target.reduction.value}")
    steps: list[Step] = []
    dims = list(source.dims)
    used = source.used
    for dim, (have, want) in enumerate(zip(source.dims, target.dims, strict=True)):
        free = _leading(want[len(have) :], used) if want[: len(have)] == have else ()
        if free and nests(dim, have, have + free):
            steps.append(AllSlice(dim, free))
            dims[dim] = have + free
            used |= frozenset(free)
    reduced = tuple(axis for axis in source.unreduced if axis not in target.unreduced)
    if reduced:
        steps.append(AllReduce(reduced, source.reduction))
    for dim, (have, want) in enumerate(zip(dims, target.dims, strict=True)):
        kept = _common_length(have, want)
        if not (nests(dim, have, have[:kept]) and nests(dim, have[:kept], want)):
            kept = 0
        if len(have) > kept:
            steps.append(AllGather(dim, have[kept:]))
            dims[dim] = have[:kept]
    for dim, (have, want) in enumerate(zip(dims, target.dims, strict=True)):
        if len(want) > len(have):
            steps.append(AllSlice(dim, want[len(have) :]))
    return tuple(steps)


def _common_length(one: GridAxes, other: GridAxes) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def _leading(axes: GridAxes, used: frozenset[int]) -> GridAxes:
    """The axes up to the first that is in use."""
    length = 0
    while length < len(axes) and axes[length] not in used:
        length += 1
    return axes[:length]


_Lists = list[list[int]]


def permuted_course(
    start: Placement, end: Placement, sizes: tuple[int, ...], most_devices: int
) -> tuple[Move, ...] | None:
    """The moves on a grid with axes of these prime sizes; None where something is reduced, or axes do not come out.

    An all-to-all along several axes is between at most so many devices. Blocks that do not nest may forbid the course.
    """
    if start.unreduced != end.unreduced:
        return None
    counts = [prod(sizes[axis] for axis in axes) for axes in end.dims]
    own = _sliced(start, end, counts, sizes)
    wanted = [prod(sizes[axis] for axis in axes) for axes in own]
    last = _before_gather(end, own, sizes)
    taken_back = _taken_back(last, wanted, sizes, most_devices)
    if taken_back is None:
        return None
    first, moved = taken_back
    moves: list[Move] = []
    pairs = zip(start.dims, own, strict=True)
    moves += _together(
        [AllSlice(dim, new) for dim, (old, axes) in enumerate(pairs) if (new := tuple(axes[len(old) :]))]
    )
    if first != own:
        moves.append(CollectivePermute(tuple(map(tuple, first))))
    moves += reversed(moved)
    gathers = zip(last, end.dims, strict=True)
    moves += _together(
        [AllGather(dim, more) for dim, (axes, kept) in enumerate(gathers) if (more := tuple(axes[len(kept) :]))]
    )
    return tuple(moves)


def _sliced(start: Placement, end: Placement, counts: list[int], sizes: tuple[int, ...]) -> _Lists:
    """The axes of `start` with free ones, until there are as many blocks as at the end: first where they are wanted."""
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
    """The axes of `end` with others, until there are as many blocks as `own` makes, where there are too few."""
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
    """A placement with so many blocks of each dimension, and all-to-alls, the last one first, from it to `last`."""
    dims = [list(axes) for axes in last]
    moved: list[AllToAll] = []
    while True:
        counts = [prod(sizes[axis] for axis in axes) for axes in dims]
        if counts == wanted:
            return dims, moved
        surplus = [has // gcd(has, want) for has, want in zip(counts, wanted, strict=True)]
        lacking = [want // gcd(has, want) for has, want in zip(counts, wanted, strict=True)]
        ways = [
            (prod(sizes[axis] for axis in axes), source, target, axes)
            for source, target in _pairs(len(dims))
            if (axes := _movable(dims[source], gcd(surplus[source], lacking[target]), sizes, most_devices))
        ]
        if not ways:
            return None
        _, source, target, axes = max(ways)
        del dims[source][-len(axes) :]
        dims[target] += axes
        moved.append(AllToAll(axes, target, source))


def _pairs(rank: int) -> Iterator[tuple[int, int]]:
    return ((one, other) for one in range(rank) for other in range(rank) if one != other)


def _movable(axes: list[int], count: int, sizes: tuple[int, ...], most_devices: int) -> GridAxes:
    """The longest end of a dimension's axes that makes a number of blocks that divides `count`."""
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
