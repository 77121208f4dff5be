# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least memory with which there is a way through a search space: a search for the widest path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from mlir_shard.resharding.search_space import DEAREST, Edge, Kind, SearchSpace, State


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes a device: with `limit` there is a way, None where none was found; with less than `least` there is none."""

    limit: int | None
    least: int


def least_memory(space: SearchSpace, source: State, target: State, most_states: int, with_exchange: bool) -> Memory:
    """The least memory for a way from `source` to `target`, of those of the first so many states reached."""
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
