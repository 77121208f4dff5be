# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cheapest path through a search space: A* (Hart, Nilsson, Raphael 1968), with a budget of states.

Also its admissible bound, the widest path for a bound on memory, and problems equal up to a permutation of axes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from math import inf

from mlir_shard.resharding.search_space import DEAREST, Cost, Edge, Kind, SearchSpace, State
from mlir_shard.resharding.steps import GridAxes


@dataclass(frozen=True, slots=True)
class Renaming:
    """For each axis the one that takes its name."""

    names: GridAxes

    @staticmethod
    def by_appearance(kinds: Sequence[Hashable], axes: Iterable[int]) -> Renaming:
        """Names that axes of one kind take in the order in which they appear in `axes`, then of what is left."""
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
        """The renaming that undoes this one."""
        return Renaming(tuple(map(self.names.index, range(len(self.names)))))

    def axes(self, axes: GridAxes) -> GridAxes:
        """Axes in the same order."""
        return tuple(self.names[axis] for axis in axes)

    def state(self, state: State) -> State:
        """A state of a search."""
        return State(tuple(map(self.axes, state.dims)), tuple(sorted(self.axes(state.unreduced))))


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes a device: with `limit` there is a path, None where none was found; with less than `least` there is none."""

    limit: int | None
    least: int


def least_memory(space: SearchSpace, source: State, target: State, most_states: int, with_exchange: bool) -> Memory:
    """The least memory for a path from `source` to `target`, of those of the first so many states reached."""
    start = max(space.local_bytes(source.dims), space.local_bytes(target.dims))
    has_all = True
    reached = {source: start}
    queue = [(start, 0, source)]
    while queue:
        memory, _, state = heappop(queue)
        if state == target:
            return Memory(memory, memory if has_all else start)
        if memory > reached[state]:
            continue
        if len(reached) > most_states:
            return Memory(space.memory_limit, memory if has_all else start)
        has_all = has_all and space.has_all_moves(state)
        for edge in _edges(space, state, target, with_exchange):
            held = memory
            if edge.kind is not Kind.SLICE:
                held = max(memory, space.local_bytes(state.dims) + space.local_bytes(edge.after.dims))
            if held < reached.get(edge.after, held + 1):
                reached[edge.after] = held
                heappush(queue, (held, -len(reached), edge.after))
    return Memory(None, start)


def _edges(space: SearchSpace, state: State, target: State, with_exchange: bool) -> Iterator[Edge]:
    yield from space.edges(state)
    if space.is_large:
        yield from space.moves_towards(state, target)
    yield from space.permutations(state, target)
    if with_exchange and (exchange := space.exchange(state, target, DEAREST)) is not None:
        yield exchange


class RemainingCost:
    """What is to be paid until `target` in a search space, with or without a direct exchange as the last move."""

    def __init__(self, space: SearchSpace, target: State, num_kept: int, *, with_exchange: bool) -> None:
        self._space, self._target, self._with_exchange = space, target, with_exchange
        self._traffic = space.traffic
        self._box = self._traffic.largest_box(target.dims)
        self._reduced_once = self._traffic.held_by_all(target.dims)
        self._distinct = self._traffic.num_elements * num_kept
        self._latency = space.times.least_latency
        self._seconds_per_byte = space.times.least_seconds_per_byte
        sizes, ring_latency = space.tensor.grid.sizes, space.times.ring_latency
        self._rings = sorted({(sizes[axis], ring_latency((axis,))) for axis in space.axes})
        self._latency_of_sources = cache(self._latency_to_combine)
        self._known: dict[State, Cost] = {target: (0.0, 0.0)}

    def of(self, state: State) -> Cost:
        """The bound from this state."""
        found = self._known.get(state)
        if found is None:
            found = self._known[state] = self._of(state)
        return found

    def _of(self, state: State) -> Cost:
        if state.unreduced:
            partials = self._traffic.count(state.unreduced)
            total = self._reduced_once + self._distinct * (partials - 2)
            most = self._box
            latency = self._space.times.ring_latency(state.unreduced)
        else:
            total, most = self._traffic.lacking(state.dims, self._target.dims)
            latency = 0.0
        if total:
            sources = self._traffic.most_senders(state.dims, self._target.dims)
            latency = max(self._latency, latency + self._latency_of_sources(sources))
        return self._space.cost(total, latency + self._space.in_bytes(most) * self._seconds_per_byte)

    def _latency_to_combine(self, sources: int) -> float:
        """The least latency of moves after which a device has something of so many shards.

        A collective along an axis multiplies what a device has something of by the size of the axis at most; a direct
        exchange, which is last, adds one for each round.
        """
        if sources <= 1:
            return 0.0
        least = (sources - 1) * self._latency if self._with_exchange else inf
        for size, latency in self._rings:
            least = min(least, latency + self._latency_of_sources(-(-sources // size)))
        return least


LEAST_MOVES, MOST_MOVES = 40, 150
"""The moves that are tried in a large space: most where what is known may cost twice as much as is needed."""


@dataclass(frozen=True, slots=True)
class Path:
    """The states that a search found to go through, each with the kind of the move to it, and what it proved.

    `steps` is None where no path is cheaper than what the search was given; no path costs less than `least`, of the
    first of the two parts of costs.
    """

    steps: tuple[tuple[Kind, State], ...] | None
    cost: Cost
    least: float


class Search:
    """The search for the path from `source` to `target` that costs less than `at_most`.

    With a `weight` above 1 it goes for the target rather than for
    the best path, and proves nothing.
    """

    def __init__(
        self,
        space: SearchSpace,
        remaining: RemainingCost,
        target: State,
        *,
        with_exchange: bool,
        at_most: Cost = DEAREST,
        weight: float = 1.0,
    ) -> None:
        self._space, self._remaining, self._target = space, remaining, target
        self._with_exchange, self._best, self._weight = with_exchange, at_most, weight
        self._looked_at: set[State] = set()
        self._reached: dict[State, Cost] = {}
        self._from: dict[State, tuple[State, Kind]] = {}
        self._open: list[tuple[float, float, int, Cost, State]] = []
        self._count = 0
        self._num_followed = 0
        self._has_all = True

    def run(self, source: State, most_states: int) -> Path:
        """The path, where one is found before so many states are looked at.

        In a large space it ends too after some moves, fewer where what is known costs little more than has to be paid.
        """
        self._reach(source, (0.0, 0.0), None)
        least = self._remaining.of(source)[0]
        gap = self._best[0] / least - 1 if least else inf
        most_moves = min(most_states, max(LEAST_MOVES, MOST_MOVES * min(1.0, gap)))
        while self._open:
            estimate, _, _, cost, state = heappop(self._open)
            if cost != self._reached[state]:
                continue
            is_enough = self._space.is_large and self._num_followed > most_moves
            if state == self._target or is_enough or len(self._looked_at) > most_states:
                proved = estimate
                break
            self._expand(state, cost)
        else:
            proved = inf
        steps = self._steps(source)
        proved = min(proved, self._best[0])
        if self._weight > 1 or not self._has_all:
            proved = min(proved, least)
        return Path(steps, self._best, max(least, proved) if steps is not None or proved < inf else inf)

    def _expand(self, state: State, cost: Cost) -> None:
        arrived = self._from.get(state)
        for edge in self._space.edges(state):
            self._follow(state, cost, edge)
        if self._space.is_large:
            for edge in self._space.moves_towards(state, self._target):
                self._follow(state, cost, edge)
        if arrived is None or arrived[1] is not Kind.PERMUTE:
            for edge in self._space.permutations(state, self._target):
                self._follow(state, cost, edge)
            self._has_all = self._has_all and self._space.has_all_moves(state)
        if self._with_exchange:
            left = (self._best[0] - cost[0], self._best[1] - cost[1] if self._best[0] == cost[0] else inf)
            exchange = self._space.exchange(state, self._target, left)
            if exchange is not None:
                self._follow(state, cost, exchange)

    def _follow(self, state: State, cost: Cost, edge: Edge) -> None:
        self._num_followed += 1
        self._reach(edge.after, (cost[0] + edge.cost[0], cost[1] + edge.cost[1]), (state, edge.kind))

    def _reach(self, state: State, cost: Cost, arrived: tuple[State, Kind] | None) -> None:
        known = self._reached.get(state)
        if known is not None and known <= cost:
            return
        self._looked_at.add(state)
        more = self._remaining.of(state)
        estimate = (cost[0] + self._weight * more[0], cost[1] + self._weight * more[1])
        if (cost[0] + more[0], cost[1] + more[1]) >= self._best:
            return
        if state == self._target:
            self._best = cost
        self._reached[state] = cost
        if arrived is not None:
            self._from[state] = arrived
        # Of equals the last one first, which is nearer to the target.
        self._count -= 1
        heappush(self._open, (*estimate, self._count, cost, state))

    def _steps(self, source: State) -> tuple[tuple[Kind, State], ...] | None:
        if self._target not in self._reached:
            return None
        steps = []
        state = self._target
        while state != source:
            before, kind = self._from[state]
            steps.append((kind, state))
            state = before
        return tuple(reversed(steps))
