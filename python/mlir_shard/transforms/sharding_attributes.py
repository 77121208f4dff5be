# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changing every sharding in a module, wherever it is an attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.walk import ops_in

Transform = Callable[[TensorSharding], TensorSharding]


def transform_shardings(root: Any, transform: Transform) -> None:
    """Replaces each sharding in and below `root` by `transform` of it; asked once per distinct attribute."""
    done: dict[Any, Any] = {}

    def changed(attribute: Any) -> Any:
        if attribute not in done:
            done[attribute] = _transformed(attribute, transform)
        return done[attribute]

    for op in ops_in(root):
        attributes = op.attributes
        for name in list(attributes):
            old = attributes[name]
            if isinstance(old, SdyAttribute):
                new = changed(old)
            elif name in ("arg_attrs", "res_attrs"):
                new = _signature(old, changed)
            else:
                continue
            if new != old:
                attributes[name] = new


def _transformed(attribute: Any, transform: Transform) -> Any:
    value = attribute.value
    if isinstance(value, TensorSharding):
        return sdy.attribute(transform(value), attribute.context)
    if isinstance(value, TensorShardingPerValue):
        shardings = replace(value, shardings=tuple(map(transform, value.shardings)))
        return sdy.attribute(shardings, attribute.context)
    return attribute


def _signature(dictionaries: Any, changed: Callable[[Any], Any]) -> Any:
    context = dictionaries.context
    new = []
    for dictionary in dictionaries:
        if sdy.SHARDING in dictionary and isinstance(dictionary[sdy.SHARDING], SdyAttribute):
            entries = {named.name: named.attr for named in dictionary}
            entries[sdy.SHARDING] = changed(entries[sdy.SHARDING])
            dictionary = ir.DictAttr.get(entries, context)
        new.append(dictionary)
    return ir.ArrayAttr.get(new, context)
