# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches on grids, cached up to a permutation of equal axes, and the moves of a path that is found."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import chain

from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.links import common_length
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.search import Path, RemainingCost, Renaming, Search, least_memory
from mlir_shard.resharding.search_space import Cost, Kind, SearchSpace, State
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

PathSteps = tuple[tuple[Kind, State], ...]


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


def in_fewer_moves(source: State, steps: PathSteps, space: SearchSpace) -> PathSteps:
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


MOST_PERMUTATIONS = 150
"""Where there are more permutations of devices than these from one placement, none is tried."""
GREED = 3.0
"""How much dearer what remains is taken to be where the search has to come to an end."""


@dataclass(frozen=True, slots=True)
class Found:
    """The path that was found, None if none was, and what no path on the grid costs less than, by the objective."""

    steps: PathSteps | None
    least: float


class GridSearch:
    """Searches by one cost model, each until `most_states` states have been looked at."""

    def __init__(self, model: CostModel, most_states: int, *, most_messages: int) -> None:
        self._model, self._most_states, self._most_messages = model, most_states, most_messages
        self._with_exchange = most_messages > 0
        self._spaces: dict[Hashable, SearchSpace] = {}
        self._bounds: dict[tuple[SearchSpace, State], RemainingCost] = {}
        self._found: dict[Hashable, Found] = {}

    def find(self, tensor: GridTensor, source: State, target: State, kept: GridAxes, at_most: Cost) -> Found:
        """The cheapest path that costs less than `at_most`; values stay partial along `kept`."""
        grid = tensor.grid
        kinds = tuple(zip(grid.sizes, (self._model.link(atom.name) for atom in grid.atoms), strict=True))
        renaming = Renaming.by_appearance(kinds, chain(*source.dims, *target.dims, source.unreduced, kept))
        # The axes of one kind come in the same order in every mesh, those of different kinds where they stand.
        problem = kinds, tensor.shape, tensor.element_size, tuple(sorted(renaming.axes(kept)))
        source, target = renaming.state(source), renaming.state(target)
        key = problem, source, target, at_most
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._search(tensor, problem, source, target, at_most)
        if found.steps is None:
            return found
        back = renaming.back
        return replace(found, steps=tuple((kind, back.state(state)) for kind, state in found.steps))

    def least(self, tensor: GridTensor, source: State, target: State, kept: GridAxes) -> float:
        """What no path on the grid costs less than, by seconds or bytes, without a search."""
        space = SearchSpace(tensor, self._model, kept, None, 0, self._most_messages)
        return self._remaining(space, target, kept).of(source)[0]

    def _search(
        self,
        tensor: GridTensor,
        problem: tuple[Hashable, Hashable, int, GridAxes],
        source: State,
        target: State,
        at_most: Cost,
    ) -> Found:
        limit, least, kept = self._model.memory_limit, None, problem[-1]
        if self._model.objective is Objective.MEMORY:
            # More than any two local tensors: there is a limit so that the space has the moves that matter to memory.
            limit = limit or 2 * tensor.element_size * (max(tensor.shape, default=1) + 1) ** (len(tensor.shape) + 1)
            space = self._space(tensor, problem, kept, limit)
            memory = least_memory(space, source, target, self._most_states, self._with_exchange)
            if memory.limit is None:
                return Found(None, memory.least)
            limit, least = memory.limit, float(memory.least)
        space = self._space(tensor, problem, kept, limit)
        path = self._path(space, source, target, kept, at_most)
        steps = None if path.steps is None else in_fewer_moves(source, path.steps, space)
        return Found(steps, path.least if least is None else least)

    def _path(self, space: SearchSpace, source: State, target: State, kept: GridAxes, at_most: Cost) -> Path:
        remaining = self._bounds.get((space, target))
        if remaining is None:
            remaining = self._bounds[space, target] = self._remaining(space, target, kept)
        # A search of a large space comes to no end: it goes for the target rather than for a proof.
        weight = GREED if space.is_large else 1.0
        search = Search(space, remaining, target, with_exchange=self._with_exchange, at_most=at_most, weight=weight)
        return search.run(source, self._most_states)

    def _remaining(self, space: SearchSpace, target: State, kept: GridAxes) -> RemainingCost:
        return RemainingCost(space, target, space.traffic.count(kept), with_exchange=self._with_exchange)

    def _space(self, tensor: GridTensor, problem: Hashable, kept: GridAxes, limit: int | None) -> SearchSpace:
        found = self._spaces.get((problem, limit))
        if found is None:
            found = SearchSpace(tensor, self._model, kept, limit, MOST_PERMUTATIONS, self._most_messages)
            self._spaces[problem, limit] = found
        return found
