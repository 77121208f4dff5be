# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The placements of a tensor on a grid as a graph: its edges, what they cost, and what permutations lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache, lru_cache
from itertools import combinations, islice, permutations, product
from math import comb, inf, perm
from typing import NamedTuple

from mlir_shard.resharding.cost.block_arrays import Dims
from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.links import common_length, link_times
from mlir_shard.resharding.cost.lower_bound import blocks_nest
from mlir_shard.resharding.cost.traffic import traffic_on
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import GridAxes


@lru_cache(maxsize=4096)
def orders_up_to(counts: tuple[int, ...], axes: GridAxes, sizes: tuple[int, ...], most: int) -> tuple[Dims, ...]:
    """The placements along some of the axes with so many blocks in each dimension; none where there are more than most.

    sizes: of all axes of the grid.
    """
    found = tuple(islice(_orders(counts, axes, sizes, ((),) * len(counts)), most + 1))
    return found if len(found) <= most else ()


def likely_orders(state: Dims, target: Dims, counts: Sequence[int], axes: GridAxes, sizes: Sequence[int]) -> set[Dims]:
    """Those of the placements in which dimensions begin as `target` does, or stay as in `state`, as far as may be."""
    choices = []
    for own, wanted in zip(state, target, strict=True):
        likely = (*wanted, *(axis for axis in own if axis not in wanted))
        choices.append((likely,) if likely == own or not own else (likely, own))
    found: set[Dims] = set()
    for preferred in product(*choices):
        found.update(islice(_orders(counts, axes, sizes, preferred), 1))
    return found


def _orders(
    counts: Sequence[int], axes: GridAxes, sizes: Sequence[int], preferred: Sequence[GridAxes]
) -> Iterator[Dims]:
    if not counts:
        yield ()
    elif counts[0] == 1:
        for rest in _orders(counts[1:], axes, sizes, preferred[1:]):
            yield ((), *rest)
    else:
        first = preferred[0]
        likely = [axis for axis in first if axis in axes]
        for axis in (*likely, *(axis for axis in axes if axis not in likely)):
            if counts[0] % sizes[axis] == 0:
                left = tuple(other for other in axes if other != axis)
                for dims in _orders((counts[0] // sizes[axis], *counts[1:]), left, sizes, preferred):
                    yield ((axis, *dims[0]), *dims[1:])


# What the objective counts, then what decides among equals.
Cost = tuple[float, float]
DEAREST: Cost = (inf, inf)
MOST_PLACEMENTS = 2000
"""Where a tensor has more placements than these, the space is large: states have likely moves alone."""
# By how much equal sums of seconds may differ.
ROUNDING = 1e-9


class State(NamedTuple):
    """The axes of each dimension, and those along which values are still to be reduced."""

    dims: Dims
    unreduced: GridAxes


class Kind(Enum):
    """What a move is; from it and the states before and after follows which."""

    SLICE = "slice"
    GATHER = "gather"
    ALL_TO_ALL = "all-to-all"
    PERMUTE = "permute"
    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    EXCHANGE = "exchange"


class Edge(NamedTuple):
    """A move to another state."""

    after: State
    cost: Cost
    kind: Kind


class SearchSpace:
    """The placements of `tensor` on its grid, without axes in `kept`, along which values stay partial.

    No move needs more than `memory_limit` bytes, where there is one. A state from which there are more permutations of
    devices than `most_permutations` has likely ones alone. In a large space all states have, and of slices along
    several axes, and gathers along several dimensions, those towards the target alone; see `has_all_moves`.
    A direct exchange has at most `most_messages`, as many in a round as there are devices.
    """

    def __init__(
        self,
        tensor: GridTensor,
        model: CostModel,
        kept: GridAxes,
        memory_limit: int | None,
        most_permutations: int,
        most_messages: int,
    ) -> None:
        self.tensor, self.objective, self.memory_limit = tensor, model.objective, memory_limit
        self.traffic = traffic_on(tensor.grid.sizes, tensor.shape)
        self.times = link_times(tensor.grid, model.link)
        self._sizes = tensor.grid.sizes
        self.axes = tuple(axis for axis, size in enumerate(tensor.grid.sizes) if size > 1 and axis not in kept)
        count = self.traffic.count(self.axes)
        self.is_even = all(size % count == 0 for size in tensor.shape)
        self._most_permutations = most_permutations
        self._most_rounds = most_messages // max(1, self.traffic.num_devices)
        self.is_large = num_placements(len(self.axes), len(tensor.shape)) > MOST_PLACEMENTS
        self._edges: dict[State, tuple[Edge, ...]] = {}
        self._permutations: dict[State, tuple[Edge, ...]] = {}
        self.nests = cache(self._nests)
        self.local_bytes = cache(self._local_bytes)

    def edges(self, state: State) -> tuple[Edge, ...]:
        """All moves but permutations of devices and the direct exchange."""
        found = self._edges.get(state)
        if found is None:
            kinds = [self._slices(state), self._gathers(state), self._all_to_alls(state)]
            if state.unreduced:
                kinds += [self._all_reduces(state), self._reduce_scatters(state)]
            found = self._edges[state] = tuple(edge for of_kind in kinds for edge in of_kind)
        return found

    def permutations(self, state: State, target: State) -> tuple[Edge, ...]:
        """The permutations of devices: all, or where there are too many, those that likely lead to the target."""
        found = self._permutations.get(state)
        if found is None:
            edges = (self.permutation(state, dims) for dims in self._permuted(state) if dims != state.dims)
            found = tuple(edge for edge in edges if edge is not None)
            self._permutations[state] = found
        if self.has_all_moves(state):
            return found
        counts = tuple(map(self.traffic.count, state.dims))
        likely = likely_orders(state.dims, target.dims, counts, self._permutable(state), self._sizes)
        edges = (self.permutation(state, dims) for dims in sorted(likely) if dims != state.dims)
        return tuple(edge for edge in edges if edge is not None)

    def has_all_moves(self, state: State) -> bool:
        """Whether `edges` and `permutations` have all moves there are."""
        return bool(self._permuted(state))

    def moves_towards(self, state: State, target: State) -> Iterator[Edge]:
        """Slices of several axes to those of a dimension of the target, and gathers of all that precedes these."""
        free = set(self.free_axes(state))
        kept = tuple(own[: common_length(own, wanted)] for own, wanted in zip(state.dims, target.dims, strict=True))
        for dim, (own, wanted) in enumerate(zip(state.dims, target.dims, strict=True)):
            if own == kept[dim] and len(wanted) > len(own) + 1 and free.issuperset(wanted[len(own) :]):
                after = State(_with_dim(state.dims, dim, wanted), state.unreduced)
                if self._can_be(state, after, is_slice=True):
                    yield Edge(after, (0.0, 0.0), Kind.SLICE)
        after = State(kept, state.unreduced)
        if kept != state.dims and self._can_be(state, after):
            yield Edge(after, self._gather(state, after), Kind.GATHER)

    def permutation(self, state: State, dims: Dims) -> Edge | None:
        """The permutation of devices to these axes, which make as many blocks of each dimension."""
        after = State(dims, state.unreduced)
        if not self.has_room(state, after):
            return None
        total, most = self.traffic.permuted(state.dims, dims)
        seconds = self.times.messages_between(state.dims, dims, 1, self.in_bytes(most))
        return Edge(after, self.cost(total, seconds), Kind.PERMUTE)

    def exchange(self, state: State, target: State, at_most: Cost) -> Edge | None:
        """The direct exchange to a state.

        None if values have to be reduced, the limit of memory or of messages is exceeded, or it costs `at_most` or
        more.
        """
        if state.unreduced != target.unreduced or not self.has_room(state, target):
            return None
        total, most = self.traffic.lacking(state.dims, target.dims)
        if not total and self.is_even:
            # Slices do that.
            return None

        def cost(rounds: int) -> Cost:
            dims = state.dims, target.dims
            return self.cost(total, self.times.messages_between(*dims, max(1, rounds), self.in_bytes(most)))

        least = self.traffic.most_senders(state.dims, target.dims) - 1
        if least > self._most_rounds or cost(least) >= at_most:
            return None
        rounds = self.traffic.exchange_rounds(state.dims, target.dims)
        return Edge(target, cost(rounds), Kind.EXCHANGE) if rounds <= self._most_rounds else None

    def cost(self, total: int, seconds: float) -> Cost:
        """The cost of a move in which all devices receive `total` elements."""
        num_bytes = float(total * self.tensor.element_size)
        return (num_bytes, seconds) if self.objective is Objective.BYTES else (seconds, num_bytes)

    def in_bytes(self, elements: int) -> int:
        """The bytes of elements."""
        return elements * self.tensor.element_size

    def has_room(self, before: State, after: State) -> bool:
        """Whether local tensors of both states are within the memory of a device, as all moves but slices need."""
        limit = self.memory_limit
        return limit is None or self.local_bytes(before.dims) + self.local_bytes(after.dims) <= limit

    def can_be_one(self, kind: Kind, before: State, between: State, after: State) -> bool:
        """Whether two slices, or two gathers, can be one that costs no more than both."""
        if kind is Kind.SLICE:
            return self._can_be(before, after, is_slice=True)
        if kind is not Kind.GATHER or not self._can_be(before, after):
            return False
        parts = self._gather(before, between), self._gather(between, after)
        both = self._gather(before, after)
        return all(one <= sum(two) * (1 + ROUNDING) for one, two in zip(both, zip(*parts, strict=True), strict=True))

    def free_axes(self, state: State) -> GridAxes:
        """The axes that a state does not use."""
        used = {axis for axes in state.dims for axis in axes}.union(state.unreduced)
        return tuple(axis for axis in self.axes if axis not in used)

    def _local_bytes(self, dims: Dims) -> int:
        return self.in_bytes(self.traffic.largest_box(dims))

    def _nests(self, dim: int, old: GridAxes, new: GridAxes) -> bool:
        return blocks_nest(self.tensor.shape[dim], self.traffic.count(old), self.traffic.count(new))

    def _can_be(self, before: State, after: State, *, is_slice: bool = False) -> bool:
        if not self.is_even:
            for dim, (old, new) in enumerate(zip(before.dims, after.dims, strict=True)):
                if old != new and not self.nests(dim, old, new):
                    return False
        limit = self.memory_limit
        if is_slice:
            return limit is None or self.local_bytes(before.dims) <= limit
        return self.has_room(before, after)

    def _slices(self, state: State) -> Iterator[Edge]:
        free = self.free_axes(state)
        for dim, size in enumerate(self.tensor.shape):
            longest = 1 if self.is_large or self.is_even or size % self.traffic.count(self.axes) == 0 else len(free)
            for count in range(1, min(longest, len(free)) + 1):
                for axes in permutations(free, count):
                    before_last, last = state.dims[dim] + axes[:-1], state.dims[dim] + axes
                    if count > 1 and self.nests(dim, before_last, last):
                        continue
                    after = State(_with_dim(state.dims, dim, last), state.unreduced)
                    if self._can_be(state, after, is_slice=True):
                        yield Edge(after, (0.0, 0.0), Kind.SLICE)

    def _gathers(self, state: State) -> Iterator[Edge]:
        if self.is_even and self.memory_limit is None:
            shorter = [_with_dim(state.dims, dim, axes[:-1]) for dim, axes in enumerate(state.dims) if axes]
        elif self.is_large:
            lengths = ((dim, axes[:length]) for dim, axes in enumerate(state.dims) for length in range(len(axes)))
            shorter = [_with_dim(state.dims, dim, axes) for dim, axes in lengths]
        else:
            prefixes = ([axes[:length] for length in range(len(axes) + 1)] for axes in state.dims)
            shorter = [tuple(dims) for dims in product(*prefixes) if dims != state.dims]
        for dims in shorter:
            after = State(dims, state.unreduced)
            if self._can_be(state, after):
                yield Edge(after, self._gather(state, after), Kind.GATHER)

    def _gather(self, before: State, after: State) -> Cost:
        pairs = zip(before.dims, after.dims, strict=True)
        axes = tuple(sorted(axis for old, new in pairs for axis in old[len(new) :]))
        most = self.traffic.gathered(before.dims, self.traffic.count(axes))
        return self._of_all(most, self.times.ring(axes, self.in_bytes(most)))

    def _all_to_alls(self, state: State) -> Iterator[Edge]:
        for dims, moved in _moved(state.dims, tuple(range(len(state.dims)))):
            after = State(dims, state.unreduced)
            if moved and self._can_be(state, after):
                axes = tuple(sorted(moved))
                count = self.traffic.count(axes)
                most = self.traffic.dealt(state.dims, dims, count)
                seconds = self.times.messages(axes, count - 1, self.in_bytes(most))
                yield Edge(after, self._of_all(most, seconds), Kind.ALL_TO_ALL)

    def _all_reduces(self, state: State) -> Iterator[Edge]:
        for count in range(1, len(state.unreduced) + 1):
            for axes in combinations(state.unreduced, count):
                after = State(state.dims, tuple(axis for axis in state.unreduced if axis not in axes))
                if self.has_room(state, after):
                    most = self.traffic.reduced(state.dims, self.traffic.count(axes))
                    seconds = self.times.ring(axes, self.in_bytes(most)) + self.times.ring_latency(axes)
                    yield Edge(after, self._of_all(most, seconds), Kind.ALL_REDUCE)

    def _reduce_scatters(self, state: State) -> Iterator[Edge]:
        for count in range(1, len(state.unreduced) + 1):
            for order in permutations(state.unreduced, count):
                for dims in _distributed(state.dims, order):
                    after = State(dims, tuple(axis for axis in state.unreduced if axis not in order))
                    if self._can_be(state, after):
                        axes = tuple(sorted(order))
                        most = self.traffic.scattered(dims, self.traffic.count(axes))
                        seconds = self.times.ring(axes, self.in_bytes(most))
                        yield Edge(after, self._of_all(most, seconds), Kind.REDUCE_SCATTER)

    def _of_all(self, most: int, seconds: float) -> Cost:
        """The cost of a collective in which each device receives `most` elements."""
        return self.cost(most * self.traffic.num_devices, seconds)

    def _permutable(self, state: State) -> GridAxes:
        return tuple(axis for axis in self.axes if axis not in state.unreduced)

    def _permuted(self, state: State) -> tuple[Dims, ...]:
        if self.is_large:
            return ()
        counts = tuple(map(self.traffic.count, state.dims))
        return orders_up_to(counts, self._permutable(state), self._sizes, self._most_permutations)


def _with_dim(dims: Dims, dim: int, axes: GridAxes) -> Dims:
    return (*dims[:dim], axes, *dims[dim + 1 :])


def _moved(dims: Dims, left: GridAxes) -> Iterator[tuple[Dims, GridAxes]]:
    """What all-to-alls between pairs of the dimensions in `left` make, and the axes moved; first that of none.

    Each set of pairs is there once, as the smaller dimensions of the pairs ascend.
    """
    yield dims, ()
    for number, one in enumerate(left):
        for other in left[number + 1 :]:
            rest = tuple(dim for dim in left[number + 1 :] if dim != other)
            for source, target in ((one, other), (other, one)):
                for count in range(1, len(dims[source]) + 1):
                    axes = dims[source][-count:]
                    moved = _with_dim(_with_dim(dims, source, dims[source][:-count]), target, dims[target] + axes)
                    for result, more in _moved(moved, rest):
                        yield result, axes + more


def _distributed(dims: Dims, order: GridAxes) -> Iterator[Dims]:
    """The axes in this order, the first few at the end of the first dimension, the next of the second, and so on."""
    if not dims:
        if not order:
            yield ()
        return
    for count in range(len(order) + 1):
        for rest in _distributed(dims[1:], order[count:]):
            yield (dims[0] + order[:count], *rest)


def num_placements(num_axes: int, rank: int) -> int:
    """How many ways there are to give some axes, in some order, to the dimensions."""
    if not rank:
        return 1
    return sum(perm(num_axes, count) * comb(count + rank - 1, count) for count in range(num_axes + 1))
