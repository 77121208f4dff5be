# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plan that always works: reduce, gather what the target does not keep, slice what it adds."""

from __future__ import annotations

from collections.abc import Callable

from mlir_shard.resharding.steps import AllGather, AllReduce, AllSlice, GridAxes, Placement, Step


class NoPlan(Exception):
    """There are no steps from the source to the target; the message says what is in the way."""


# Whether blocks of a dimension along some axes make those along others up, see `blocks_nest`.
Nests = Callable[[int, GridAxes, GridAxes], bool]


def plan(source: Placement, target: Placement, nests: Nests = lambda dim, old, new: True) -> tuple[Step, ...]:
    """The steps that bring a tensor from `source` to `target`, in order.

    Slices along axes that the source does not use come first, so that what follows moves less. Where blocks are not
    even, a dimension of which they do not nest is gathered whole.
    Raises NoPlan where the target is partial along an axis that the source is not.
    """
    extra = [axis for axis in target.unreduced if axis not in source.unreduced]
    if extra:
        raise NoPlan(f"the target is unreduced along grid axes {extra}, along which the source holds whole values")
    if target.unreduced and target.reduction is not source.reduction:
        raise NoPlan(f"an unreduced {source.reduction.value} is no unreduced {target.reduction.value}")
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
