# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The moves of a way through a search space, and slices and gathers in a row as one where that costs no more."""

from __future__ import annotations

from mlir_shard.resharding.link_times import common_length
from mlir_shard.resharding.search_space import Kind, SearchSpace, State
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    GridAxes,
    Move,
    OneDimStep,
    Placement,
    ReduceScatter,
    Together,
)

WaySteps = tuple[tuple[Kind, State], ...]


def move_between(kind: Kind, before: Placement, after: Placement) -> Move:
    """The move of this kind that makes of one placement the other."""
    if kind is Kind.PERMUTE:
        return CollectivePermute(after.dims)
    if kind is Kind.EXCHANGE:
        return DirectExchange(after)
    reduced = tuple(axis for axis in before.unreduced if axis not in after.unreduced)
    if kind is Kind.ALL_REDUCE:
        return AllReduce(reduced, before.reduction)
    pairs = tuple(enumerate(zip(before.dims, after.dims, strict=True)))
    removed = {dim: axes for dim, (old, new) in pairs if (axes := old[common_length(old, new) :])}
    added = {dim: axes for dim, (old, new) in pairs if (axes := new[common_length(old, new) :])}
    steps: list[OneDimStep] = []
    if kind is Kind.SLICE:
        steps += [AllSlice(dim, axes) for dim, axes in added.items()]
    elif kind is Kind.GATHER:
        steps += [AllGather(dim, axes) for dim, axes in removed.items()]
    elif kind is Kind.REDUCE_SCATTER:
        steps += [ReduceScatter(dim, axes, before.reduction) for dim, axes in added.items()]
    else:
        target = {axes: dim for dim, axes in added.items()}
        steps += [AllToAll(axes, dim, target[axes]) for dim, axes in removed.items()]
    return steps[0] if len(steps) == 1 else Together(tuple(steps))


def in_fewer_moves(source: State, steps: WaySteps, space: SearchSpace) -> WaySteps:
    """The steps with those slices in a row that can be one as one, and gathers where that costs no more."""
    result: list[tuple[Kind, State]] = []
    befores: list[State] = []
    before = source
    for kind, after in steps:
        if result and result[-1][0] is kind and space.can_be_one(kind, befores[-1], before, after):
            result[-1] = (kind, after)
        else:
            befores.append(before)
            result.append((kind, after))
        before = after
    return tuple(result)


def placement_of(state: State, kept: GridAxes, like: Placement) -> Placement:
    """The placement that a state is, partial along `kept` too."""
    return Placement(state.dims, tuple(sorted((*kept, *state.unreduced))), like.reduction)
