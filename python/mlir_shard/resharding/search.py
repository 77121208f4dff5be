# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cheapest way through a search space: A* (Hart, Nilsson, Raphael 1968), with a budget of states.

The bound is admissible but not consistent, so a state to which a cheaper way is found is expanded again. After a
permutation of devices there is no other: one alone does both, for no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from mlir_shard.resharding.remaining_cost import RemainingCost
from mlir_shard.resharding.search_space import DEAREST, Cost, Edge, Kind, SearchSpace, State

EVEN_MOVES, UNEVEN_MOVES = 4, 1
"""In a large space the moves tried for each state that may be looked at; where blocks are not even they take longer."""


@dataclass(frozen=True, slots=True)
class Way:
    """The states that a search found to go through, each with the kind of the move to it, and what it proved.

    `steps` is None where no way is cheaper than what the search was given; no way costs less than `least`, of the
    first of the two parts of costs.
    """

    steps: tuple[tuple[Kind, State], ...] | None
    cost: Cost
    least: float


class Search:
    """The search for the way from `source` to `target` that costs less than `at_most`.

    It adds the states that it looks at to `looked_at`. With a `weight` above 1 it goes for the target rather than for
    the best way, and proves nothing.
    """

    def __init__(
        self,
        space: SearchSpace,
        remaining: RemainingCost,
        target: State,
        *,
        with_exchange: bool,
        looked_at: set[State] | None = None,
        at_most: Cost = DEAREST,
        weight: float = 1.0,
    ) -> None:
        self._space, self._remaining, self._target = space, remaining, target
        self._with_exchange, self._best, self._weight = with_exchange, at_most, weight
        self._looked_at = set() if looked_at is None else looked_at
        self._reached: dict[State, Cost] = {}
        self._from: dict[State, tuple[State, Kind]] = {}
        self._open: list[tuple[float, float, int, Cost, State]] = []
        self._count = 0
        self._num_followed = 0
        self._has_all = True

    def run(self, source: State, most_states: int) -> Way:
        """The way, where one is found before so many states are looked at that were not before.

        In a large space it ends too after `EVEN_MOVES` or `UNEVEN_MOVES` times as many moves.
        """
        most_moves = most_states * (EVEN_MOVES if self._space.is_even else UNEVEN_MOVES)
        most_states += len(self._looked_at)
        self._reach(source, (0.0, 0.0), None)
        least = self._remaining.of(source)[0]
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
        return Way(steps, self._best, max(least, proved) if steps is not None or proved < inf else inf)

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
