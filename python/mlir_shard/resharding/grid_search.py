# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for the cheapest path between placements on a grid, and the moves of a path.

The search is native: A* (Hart, Nilsson, Raphael 1968) over the placements of a tensor, with an admissible bound and a
budget of states. Problems that are equal up to a permutation of equal axes are searched once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import chain
from math import inf
from typing import NamedTuple

from mlir_shard._native import ReshardSearch
from mlir_shard.resharding.cost.block_arrays import Dims
from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.links import Link, common_length, link_times
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
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

# The cost by the objective, then the cost that breaks ties.
Cost = tuple[float, float]
DEAREST: Cost = (inf, inf)
# The relative difference up to which sums of seconds are equal.
ROUNDING = 1e-9


class State(NamedTuple):
    """The axes of each dimension, and those along which values are still to be reduced."""

    dims: Dims
    unreduced: GridAxes


class Kind(Enum):
    """The kind of a move. The kind and the states before and after determine the move."""

    SLICE = "slice"
    GATHER = "gather"
    ALL_TO_ALL = "all-to-all"
    PERMUTE = "permute"
    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    EXCHANGE = "exchange"


# As the native search numbers them.
_KINDS = tuple(Kind)

PathSteps = tuple[tuple[Kind, State], ...]


def move_between(kind: Kind, before: Placement, after: Placement) -> Move:
    """Returns the move of this kind that turns one placement into the other."""
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


def placement_of(state: State, kept: GridAxes, like: Placement) -> Placement:
    """Returns the placement of a state, partial along `kept` too."""
    return Placement(state.dims, tuple(sorted((*kept, *state.unreduced))), like.reduction)


MOST_CACHED = 4096
"""The results of searches, and the native searches, that are cached: beyond that all are evicted."""
MOST_PERMUTATIONS = 150
"""The most permutations of devices from one placement that are all tried; if there are more, only likely ones are."""
_MOST_MEMORY = 1 << 126


@dataclass(frozen=True, slots=True)
class Renaming:
    """A permutation of axes: `names[axis]` is the new name of an axis."""

    names: GridAxes

    @staticmethod
    def by_appearance(kinds: Sequence[Hashable], axes: Iterable[int]) -> Renaming:
        """Returns the renaming that numbers the axes of each kind in their order in `axes`, then the remaining axes."""
        members: defaultdict[Hashable, list[int]] = defaultdict(list)
        for axis, kind in enumerate(kinds):
            members[kind].append(axis)
        names: dict[int, int] = {}
        for axis in (*axes, *range(len(kinds))):
            if axis not in names:
                names[axis] = members[kinds[axis]].pop(0)
        return Renaming(tuple(names[axis] for axis in range(len(kinds))))

    @property
    def back(self) -> Renaming:
        """The inverse renaming."""
        return Renaming(tuple(map(self.names.index, range(len(self.names)))))

    def axes(self, axes: GridAxes) -> GridAxes:
        """Returns the renamed axes, in the same order."""
        return tuple(self.names[axis] for axis in axes)

    def state(self, state: State) -> State:
        """Returns the renamed state."""
        return State(tuple(map(self.axes, state.dims)), tuple(sorted(self.axes(state.unreduced))))


@dataclass(frozen=True, slots=True)
class Found:
    """The path that was found, if any, and a lower bound of the cost of any path on the grid, by the objective."""

    steps: PathSteps | None
    least: float


class GridSearch:
    """Native searches with one cost model, each of at most `most_states` states."""

    def __init__(self, model: CostModel, most_states: int, *, most_messages: int) -> None:
        self._model, self._most_states, self._most_messages = model, most_states, most_messages
        self._searches: dict[Hashable, ReshardSearch] = {}
        self._found: dict[Hashable, Found] = {}
        self._kind_numbers: dict[tuple[int, Link], int] = {}
        self._kinds = lru_cache(maxsize=MOST_CACHED)(self._kinds_of)

    def find(self, tensor: GridTensor, source: State, target: State, kept: GridAxes, at_most: Cost) -> Found:
        """Returns the cheapest path that costs less than `at_most`; values stay partial along `kept`."""
        kinds = self._kinds(tensor.grid)
        renaming = Renaming.by_appearance(kinds, chain(*source.dims, *target.dims, source.unreduced, kept))
        # Axes of one kind are renamed in the order of appearance; axes of different kinds keep their positions.
        problem = kinds, tensor.shape, tensor.element_size, tuple(sorted(renaming.axes(kept)))
        source, target = renaming.state(source), renaming.state(target)
        key = problem, source, target, at_most
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= MOST_CACHED:
                self._found.clear()
            found = self._found[key] = self._search(tensor, problem, source, target, at_most)
        if found.steps is None:
            return found
        back = renaming.back
        return replace(found, steps=tuple((kind, back.state(state)) for kind, state in found.steps))

    def _kinds_of(self, grid: Grid) -> tuple[int, ...]:
        """Returns the kind of each axis: those with the same number of devices and the same link are equal."""
        links = (self._model.link(atom.name) for atom in grid.atoms)
        numbers = self._kind_numbers
        return tuple([numbers.setdefault(kind, len(numbers)) for kind in zip(grid.sizes, links, strict=True)])

    def least(self, tensor: GridTensor, source: State, target: State, kept: GridAxes) -> float:
        """Returns a lower bound of the cost of any path on the grid, in seconds or bytes, without a search."""
        return self.native(tensor, kept).least(source, target)

    def native(self, tensor: GridTensor, kept: GridAxes) -> ReshardSearch:
        """Returns the native search on the grid of a tensor."""
        problem = tensor.grid, tensor.shape, tensor.element_size, kept
        return self._native(tensor, problem, kept, None)

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
            # More than any two local tensors: the search includes moves that save memory only if it has a limit.
            limit = limit or 2 * tensor.element_size * (max(tensor.shape, default=1) + 1) ** (len(tensor.shape) + 1)
            limit = min(limit, _MOST_MEMORY)
            of_limit = self._native(tensor, problem, kept, limit)
            memory, least_memory = of_limit.least_memory(source, target, self._most_states)
            if memory is None:
                return Found(None, least_memory)
            limit, least = memory, float(least_memory)
        search = self._native(tensor, problem, kept, limit)
        steps, of_path = search.find(source, target, at_most, self._most_states)
        path = (
            None if steps is None else tuple((_KINDS[kind], State(dims, unreduced)) for kind, dims, unreduced in steps)
        )
        return Found(path, of_path if least is None else least)

    def _native(self, tensor: GridTensor, problem: Hashable, kept: GridAxes, limit: int | None) -> ReshardSearch:
        found = self._searches.get((problem, limit))
        if found is None:
            if len(self._searches) >= MOST_CACHED:
                self._searches.clear()
            sizes, times = tensor.grid.sizes, link_times(tensor.grid, self._model.link)
            each = [(axis,) for axis in range(len(sizes))]
            found = self._searches[problem, limit] = ReshardSearch(
                sizes,
                list(map(times.latency, each)),
                list(map(times.seconds_per_byte, each)),
                list(map(times.ring_latency, each)),
                tensor.shape,
                tensor.element_size,
                self._model.objective is Objective.BYTES,
                kept,
                limit,
                MOST_PERMUTATIONS,
                self._most_messages,
            )
        return found
