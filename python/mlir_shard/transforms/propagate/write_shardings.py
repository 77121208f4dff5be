# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attaches the shardings of a value graph to the module it was read from."""

from __future__ import annotations

from array import array
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.sharding import TensorShardingPerValue
from mlir_shard.transforms.propagate.edge_frames import set_argument_sharding
from mlir_shard.transforms.propagate.function_signatures import ARGUMENTS, RESULTS
from mlir_shard.transforms.propagate.read_module import ModuleReader


def write_shardings(reader: ModuleReader, original: array[int]) -> None:
    """Writes the sharding of each place whose state is not the `original` one any more."""
    arrays, graph = reader.arrays, reader.graph
    plain = reader.plain_signatures()
    others = arrays.write_states(graph.states, original, plain, sdy.SHARDING, lambda state: _attribute(reader, state))
    functions: dict[tuple[int, str], dict[int, int]] = {}
    for place in others:
        state = graph.states[place]
        sharding = graph.table[state]
        if sharding is None:
            continue
        if place >= reader.first_result:
            function, index = reader.results[place - reader.first_result]
            functions.setdefault((function, RESULTS), {})[index] = state
        elif arrays.definers[place - 1] >= 0:
            sdy.set_sharding(arrays.value(place - 1), sharding)
        elif place - 1 in reader.argument_of:
            function, index = reader.argument_of[place - 1]
            functions.setdefault((function, ARGUMENTS), {})[index] = state
        else:
            set_argument_sharding(arrays.value(place - 1).maybe_downcast(), sharding)
    for (function, key), states in functions.items():
        reader.functions.write(arrays.operation(function), key, states)


def _attribute(reader: ModuleReader, state: int) -> Any:
    sharding = reader.graph.table[state]
    if sharding is None:
        raise ValueError("propagation took a sharding away")
    return sdy.attribute(TensorShardingPerValue((sharding,)), reader.arrays.operation(0).context)
