# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attaches the shardings of a value graph to the module it was read from."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.propagate.edge_frames import set_argument_sharding
from mlir_shard.transforms.propagate.read_module import ModuleReader


def write_shardings(reader: ModuleReader, original: list[int]) -> None:
    """Writes the sharding of each place whose state is not the `original` one any more."""
    # Ops whose only result has a sharding in the attribute that all ops share, by that sharding.
    plain: dict[TensorSharding, list[int]] = {}
    functions: dict[tuple[int, str], dict[int, TensorSharding]] = {}
    arrays, graph = reader.arrays, reader.graph
    for place, (state, before) in enumerate(zip(graph.states, original, strict=True)):
        sharding = graph.table[state]
        if state == before or sharding is None:
            continue
        if place >= reader.first_result:
            function, index = reader.results[place - reader.first_result]
            functions.setdefault((function, "res_attrs"), {})[index] = sharding
            continue
        definer = arrays.definers[place - 1]
        if definer >= 0 and reader.has_plain_sharding(definer):
            plain.setdefault(sharding, []).append(definer)
        elif definer >= 0:
            sdy.set_sharding(arrays.value(place - 1), sharding)
        elif place - 1 in reader.argument_of:
            function, index = reader.argument_of[place - 1]
            functions.setdefault((function, "arg_attrs"), {})[index] = sharding
        else:
            set_argument_sharding(arrays.value(place - 1).maybe_downcast(), sharding)
    context = arrays.operation(0).context if len(arrays) else None
    for sharding, ops in plain.items():
        shardings = TensorShardingPerValue((sharding,))
        arrays.set_attribute(ops, sdy.SHARDING, sdy.attribute(shardings, context))
    for (function, key), changed in functions.items():
        _write_signature(arrays.operation(function), key, changed)


def _write_signature(function: Any, key: str, shardings: dict[int, TensorSharding]) -> None:
    type_ = function.attributes["function_type"].value
    context = function.context
    count = len(type_.inputs if key == "arg_attrs" else type_.results)
    given = function.attributes[key] if key in function.attributes else [ir.DictAttr.get({}, context)] * count
    dictionaries = list(given)
    for index, sharding in shardings.items():
        entries = {named.name: named.attr for named in dictionaries[index]}
        entries[sdy.SHARDING] = sdy.attribute(sharding, context)
        dictionaries[index] = ir.DictAttr.get(entries, context)
    function.attributes[key] = ir.ArrayAttr.get(dictionaries, context)
