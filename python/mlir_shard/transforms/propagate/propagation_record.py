# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of a propagation over a value graph: its initial origins, and writing it to the module.

In the record, values are places, nodes are their numbers, and the return with number i is -1 - i.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir_shard.dialects.data_flow import owning_op
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
from mlir_shard.transforms.propagate.value_graph import NOWHERE


def begin_record(module: Any, reader: ModuleReader, *, origins: bool) -> Record[int]:
    """Returns a record with the initial origins of the places of a graph if `origins`, else without origins."""
    record: Record[int] = Record(next_step(reader.arrays.attributes(debug_record.PROPAGATION_EDGES)[1]))
    if origins:
        for beginning in name_origins(module):
            number = reader.arrays.number_of(beginning.value)
            if number is not None:
                record.begin(reader.place(number), beginning.sharding, beginning.origin)
        _name_ops(reader, record)
    return record


def _name_ops(reader: ModuleReader, record: Record[int]) -> None:
    """Names the ops that have shardings without an origin, and records them as origins."""
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
    """Attaches the requested records to the module that was read."""
    if origins:
        of_values = sorted(record.origins.items())
        write_origins((reader.arrays.value(place - 1), of_axes) for place, of_axes in of_values if place != NOWHERE)
    if edges:
        write_edges(_moves(reader, record))


def _moves(reader: ModuleReader, record: Record[int]) -> Iterator[tuple[Any, list[tuple[int, AxisMove]]]]:
    """Yields the moves of each op, and for each function the moves through its return."""
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
