# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation with a record of every step: the fixpoint of `value_graph` in the same order, slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from mlir_shard.dialects.data_flow import owning_op
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.propagation_edges import AxisMove, op_name
from mlir_shard.transforms import debug_record
from mlir_shard.transforms.debug_record import (
    EDGE,
    Record,
    name_origins,
    next_step,
    set_name,
    write_edges,
    write_origins,
)
from mlir_shard.transforms.propagate.read_module import ModuleReader
from mlir_shard.transforms.propagate.value_graph import NOTHING, NOWHERE, UNKNOWN, Node, States, Step, ValueGraph

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


def begin_record(module: Any, reader: ModuleReader, *, origins: bool) -> Record[int]:
    """A record in which the places of a graph have the origins that they begin with, if these are asked for."""
    record: Record[int] = Record(next_step(reader.arrays.attributes(debug_record.PROPAGATION_EDGES)[1]))
    if origins:
        for beginning in name_origins(module):
            number = reader.arrays.number_of(beginning.value)
            if number is not None:
                record.begin(reader.place(number), beginning.sharding, beginning.origin)
        _name_ops(reader, record)
    return record


def _name_ops(reader: ModuleReader, record: Record[int]) -> None:
    """Names the ops that have shardings of which nothing is said yet, and says it."""
    names: dict[tuple[int | None, ...], str] = {}
    for place in range(NOWHERE + 1, reader.first_result):
        sharding = reader.graph.sharding(place)
        if sharding is None or record.knows(place, sharding):
            continue
        op = owning_op(reader.arrays.value(place - 1))
        if op.name == EDGE:
            op = owning_op(op.operands[0])
        key = tuple(map(reader.arrays.number_of, op.results))
        if key not in names:
            names[key] = op_name(len(names))
            set_name(op, names[key])
        record.begin(place, sharding, names[key])


def write_record(reader: ModuleReader, record: Record[int], *, origins: bool, edges: bool) -> None:
    """Attaches what is asked for to the module that was read."""
    if origins:
        of_values = sorted(record.origins.items())
        write_origins((reader.arrays.value(place - 1), of_axes) for place, of_axes in of_values if place != NOWHERE)
    if edges:
        write_edges(_moves(reader, record))


def _moves(reader: ModuleReader, record: Record[int]) -> Iterator[tuple[Any, list[tuple[int, AxisMove]]]]:
    """The moves by ops, those through returns by functions."""
    graph, arrays = reader.graph, reader.arrays
    by_rule = reader.node_ops()
    for number, node in enumerate(graph.nodes):
        op = next(by_rule) if graph.kinds[node.kind].is_op else owning_op(arrays.value(node.results[0] - 1))
        if number in record.moves:
            yield op, record.moves[number]
    of_functions: dict[int, list[tuple[int, AxisMove]]] = {}
    for number, node in enumerate(graph.returns):
        function, _ = reader.results[node.results[0] - reader.first_result]
        of_functions.setdefault(function, []).extend(record.moves.get(-1 - number, ()))
    for function, moves in of_functions.items():
        yield arrays.operation(function), moves
