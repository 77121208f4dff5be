# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attaches the shardings of a value graph to the module it was read from."""

from __future__ import annotations

from array import array
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.propagate.edge_frames import set_argument_sharding
from mlir_shard.transforms.propagate.function_signatures import ARGUMENTS, RESULTS
from mlir_shard.transforms.propagate.read_module import ModuleReader


def write_shardings(reader: ModuleReader, original: array[int]) -> None:
    """Writes the sharding of each place whose state is not the `original` one any more."""
    arrays, graph = reader.arrays, reader.graph
    context = arrays.operation(0).context if len(arrays) else None

    def per_value(state: int) -> Any:
        return sdy.attribute(TensorShardingPerValue((_sharding(reader, state),)), context)

    def single(state: int) -> Any:
        return sdy.attribute(_sharding(reader, state), context)

    unwritten = original
    for key, is_per_value in sdy.SHARDING_KEYS.items():
        make = per_value if is_per_value else single
        others = arrays.write_states(graph.states, unwritten, reader.signatures_with(key), key, make)
        unwritten = graph.states[:]
        for place in others:
            unwritten[place] = original[place]
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


def _sharding(reader: ModuleReader, state: int) -> TensorSharding:
    sharding = reader.graph.table[state]
    if sharding is None:
        raise ValueError("propagation took a sharding away")
    return sharding
