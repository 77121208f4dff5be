# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixpoint of `fixpoint.py`, in the same order, with a record of every step. Slow, and only for debugging."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.propagation_edges import AxisMove
from mlir_shard.transforms.propagate.debug_record import Record
from mlir_shard.transforms.propagate.fixpoint import States, Step
from mlir_shard.transforms.propagate.value_graph import NOTHING, NOWHERE, UNKNOWN, Node, ValueGraph

# From the number of a behaviour and the states of a node's places the axes that a step moves.
Moves = Callable[[int, States], Sequence[AxisMove]]


class RecordingFixpoint:
    """Takes steps through the nodes of a graph. In the record values are places, nodes are by their number, and the
    return with number i is -1 - i."""

    def __init__(self, graph: ValueGraph, record: Record[int]) -> None:
        self._graph = graph
        self._record = record
        self._nodes = list(graph.nodes)
        self._around: list[list[int]] = [[] for _ in graph.states]
        for number, node in reversed(list(enumerate(self._nodes))):
            for place in dict.fromkeys(node.operands):
                self._around[place].append(number)
        for number, node in enumerate(self._nodes):
            for place in node.results:
                self._around[place].insert(0, number)

    def run(self, behaviours: Sequence[int], step: Step, moves: Moves) -> None:
        """Brings the shardings of the graph to the fixpoint of `step`, which moves axes as `moves` says."""
        take = partial(self._take, behaviours, step, moves)
        self._through_returns(take)
        stack = list(reversed(range(len(self._nodes))))
        waiting = set(stack)
        patient: set[int] = set()
        while stack:
            number = stack.pop()
            waiting.remove(number)
            patient.discard(number)
            for place in take(number, self._nodes[number]):
                for other in self._around[place]:
                    if other == number or other in waiting:
                        continue
                    if self._is_patient(other, place):
                        patient.add(other)
                    else:
                        waiting.add(other)
                        stack.append(other)
            if not stack:
                stack = sorted(patient, reverse=True)
                waiting = set(stack)
        self._through_returns(take)

    def _is_patient(self, number: int, place: int) -> bool:
        """Whether a node waits when a place around it has changed."""
        node = self._nodes[number]
        return self._graph.kinds[node.kind].is_patient and place not in node.results

    def _through_returns(self, take: Callable[[int, Node], list[int]]) -> None:
        for number, node in enumerate(self._graph.returns):
            take(-1 - number, node)

    def _take(self, behaviours: Sequence[int], step: Step, moves: Moves, number: int, node: Node) -> list[int]:
        """Takes one step; the places whose nodes have something new to look at."""
        states, places, behaviour = self._graph.states, node.places, behaviours[node.kind]
        before = tuple([states[place] for place in places])
        is_idle = behaviour == NOTHING or all(state == UNKNOWN for state in before)
        after = None if is_idle else step(behaviour, before)
        if after is None:
            return []
        # What a function returns and the result of the function have one origin.
        results = node.operands if number < 0 else node.results
        self._record.step(number, node.operands, results, moves(behaviour, before))
        changed = []
        for place, old, state in zip(places, before, after, strict=True):
            if state == old or place == NOWHERE:
                continue
            states[place] = state
            changed.append(place)
            changed += self._follow(place)
        return changed

    def _follow(self, place: int) -> list[int]:
        """Changes the places tied to one that has changed; those that take its sharding over."""
        graph = self._graph
        sharding = graph.sharding(place)
        for sibling, rank in graph.siblings.get(place, ()):
            if sharding is not None and graph.states[sibling] == UNKNOWN:
                graph.set_sharding(sibling, TensorSharding.fully_open(rank, sharding.mesh_or_ref))
        members = graph.groups.get(place, ())
        followers = [member for member in members if member != place]
        for member in followers:
            graph.states[member] = graph.states[place]
        self._record.share(members)
        return followers
