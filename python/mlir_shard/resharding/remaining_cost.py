# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least that is still to be paid on the way from a state to the target: the admissible bound of the search.

Bytes: no device gets what it lacks without receiving it, and what is not reduced yet is received at least once, see
`lower_bound`. Seconds: those bytes at the fastest link, and messages. Only gathers make boxes larger; an axis gathered
twice has been sliced in between, which takes back what it gave, so a growth by G takes gathers along different axes
whose sizes multiply to G, and a gather along several is as many messages as those along each. A direct exchange at the
end makes boxes larger too, n times with n - 1 messages at least.
"""

from __future__ import annotations

from functools import cache

from mlir_shard.resharding.search_space import Cost, SearchSpace, State


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
        self._gathers = _cheapest_gathers(space)
        self._growth_latency = cache(self._latency_of_growth)
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
            before = self._traffic.largest_box(state.dims)
            latency = max(self._latency, latency + self._growth_latency(self._box, before))
        return self._space.cost(total, latency + self._space.in_bytes(most) * self._seconds_per_byte)

    def _latency_of_growth(self, box: int, before: int) -> float:
        if box <= before:
            return 0.0
        least = float("inf")
        for size, latency in self._gathers.items():
            if size * before >= box:
                least = min(least, latency)
            elif self._with_exchange:
                messages = -(-box // (size * before)) - 1
                least = min(least, latency + messages * self._latency)
        return least


def _cheapest_gathers(space: SearchSpace) -> dict[int, float]:
    """By how much boxes grow, the least latency of gathers that make them."""
    found = {1: 0.0}
    for axis in space.axes:
        size, latency = space.tensor.grid.sizes[axis], space.times.ring_latency((axis,))
        for product, before in list(found.items()):
            found[product * size] = min(found.get(product * size, float("inf")), before + latency)
    return found
