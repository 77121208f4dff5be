# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least cost of all sequences of moves, from the cost of each single move, without bounds or shortcuts.

The search covers all placements on a grid, and between them every move of every kind on any dimensions at once. The
cost of a single move is `CostModel.cost`. A direct exchange is only the last move; if it reduces, it is the only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from math import inf
from typing import Any

from mlir_shard.resharding.cost.cost_model import CostModel, Objective
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


def placements(num_axes: int, rank: int, *, unreduced: bool) -> Iterator[Placement]:
    """Yields every assignment of some axes to dimensions, in any order, and with `unreduced` to partial values."""
    for places in product(range(rank + 1 + unreduced), repeat=num_axes):
        groups = [[axis for axis in range(num_axes) if places[axis] == place] for place in range(rank)]
        partial = tuple(axis for axis in range(num_axes) if places[axis] == rank + 1)
        for dims in product(*(permutations(group) for group in groups)):
            yield Placement(dims, partial)


def _some_in_order(axes: Sequence[int]) -> Iterator[GridAxes]:
    for count in range(len(axes) + 1):
        yield from permutations(axes, count)


def _per_dim(axes: Sequence[int], rank: int) -> Iterator[tuple[GridAxes, ...]]:
    """Yields disjoint lists of axes for the dimensions; lists may be empty."""
    for dims in product(*[list(_some_in_order(axes))] * rank):
        if len({axis for one in dims for axis in one}) == sum(map(len, dims)):
            yield dims


def moves(before: Placement, everywhere: Sequence[Placement], num_axes: int) -> Iterator[Move]:
    """Yields every move that could begin at a placement, except the direct exchange."""
    rank = len(before.dims)
    free = [axis for axis in range(num_axes) if axis not in before.used]
    for kind, axes in ((AllSlice, free), (ReduceScatter, list(before.unreduced))):
        for dims in _per_dim(axes, rank):
            more = () if kind is AllSlice else (before.reduction,)
            yield from _as_one([kind(dim, own, *more) for dim, own in enumerate(dims) if own])
    for counts in product(*(range(len(axes) + 1) for axes in before.dims)):
        yield from _as_one([AllGather(dim, before.dims[dim][-count:]) for dim, count in enumerate(counts) if count])
    single = [
        AllToAll(before.dims[dim][-count:], dim, other)
        for dim, other in permutations(range(rank), 2)
        for count in range(1, len(before.dims[dim]) + 1)
    ]
    for count in range(1, rank // 2 + 1):
        for some in combinations(single, count):
            if len({dim for one in some for dim in (one.source_dim, one.target_dim)}) == 2 * count:
                yield from _as_one(some)
    for count in range(1, len(before.unreduced) + 1):
        yield from (AllReduce(axes, before.reduction) for axes in combinations(before.unreduced, count))
    for after in everywhere:
        if after.unreduced == before.unreduced and after.dims != before.dims:
            yield CollectivePermute(after.dims)


def _as_one(steps: Sequence[OneDimStep]) -> Iterator[Move]:
    if steps:
        yield steps[0] if len(steps) == 1 else Together(tuple(steps))


class BruteForce:
    """All placements of one tensor, and the least costs of moves between them under one cost model."""

    def __init__(self, tensor: GridTensor, model: CostModel, *, unreduced: bool) -> None:
        self.tensor, self.model = tensor, model
        num_axes, rank = len(tensor.grid.sizes), len(tensor.shape)
        self.placements = list(placements(num_axes, rank, unreduced=unreduced))
        self._edges: dict[Placement, dict[Placement, float]] = {}
        for before in self.placements:
            edges = self._edges[before] = {}
            for move in moves(before, self.placements, num_axes):
                try:
                    after = tensor.after(move, before)
                except ValueError:
                    continue
                edges[after] = min(edges.get(after, inf), self._cost(move, before))

    def least(self, source: Placement, target: Placement, *, with_exchange: bool) -> float:
        """Returns the least cost of a sequence of moves from one placement to another."""
        if source == target:
            return self._own(source) if self.model.objective is Objective.MEMORY else 0.0
        costs = dict.fromkeys(self.placements, inf)
        costs[source] = self._own(source) if self.model.objective is Objective.MEMORY else 0.0
        changed = {source}
        while changed:
            edges = [(before, *edge) for before in changed for edge in self._edges[before].items()]
            changed = set()
            for before, after, cost in edges:
                whole = self._joined(costs[before], cost)
                if whole < costs[after]:
                    costs[after] = whole
                    changed.add(after)
        result = costs[target]
        if with_exchange:
            for before, cost in costs.items():
                is_possible = before.unreduced == target.unreduced or before == source
                if (
                    cost < result
                    and before != target
                    and is_possible
                    and set(target.unreduced) <= set(before.unreduced)
                ):
                    result = min(result, self._joined(cost, self._cost(DirectExchange(target), before)))
        return result

    def _own(self, placement: Placement) -> float:
        return float(self.tensor.local_bytes(placement))

    def _joined(self, cost: float, more: float) -> float:
        return max(cost, more) if self.model.objective is Objective.MEMORY else cost + more

    def _cost(self, move: Any, before: Placement) -> float:
        cost = self.model.cost(move, before, self.tensor)
        return {
            Objective.BYTES: float(cost.total_bytes),
            Objective.TIME: cost.time,
            Objective.MEMORY: float(cost.memory),
        }[self.model.objective]
