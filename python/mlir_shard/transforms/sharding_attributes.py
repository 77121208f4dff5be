# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changing every sharding in a module, wherever it is an attribute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue

Transform = Callable[[TensorSharding], TensorSharding]

# The attributes of a function that hold what its arguments and results have.
_SIGNATURE = ("arg_attrs", "res_attrs")


def transform_shardings(root: Any, transform: Transform) -> None:
    """Replaces each sharding below `root` by `transform` of it; asked once per distinct attribute, in text order.

    Shardings are the attribute `sdy.sharding` of an operation, an argument or a result, and the shardings that
    operations of the sdy dialect have in attributes of their own.
    """
    arrays = ModuleArrays(root)
    numbers, distinct = arrays.attributes(sdy.SHARDING)
    changed = _Memo(transform)
    holders = {index for index, op in enumerate(arrays.representatives()) if _has_own_shardings(op)}
    uses: defaultdict[int, list[int]] = defaultdict(list)
    for op, (signature, number) in enumerate(zip(arrays.signatures, numbers, strict=True)):
        if signature in holders:
            _transform_own(arrays.operation(op), changed)
        if number >= 0:
            changed(distinct[number])
            uses[number].append(op)
    for number, ops in uses.items():
        new = changed(distinct[number])
        if new != distinct[number]:
            arrays.set_attribute(ops, sdy.SHARDING, new)


def _has_own_shardings(op: Any) -> bool:
    return op.name.startswith("sdy.") or any(name in op.attributes for name in _SIGNATURE)


class _Memo:
    """The attributes that a transformation makes of attributes."""

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._done: dict[Any, Any] = {}

    def __call__(self, attribute: Any) -> Any:
        if attribute not in self._done:
            self._done[attribute] = self._transformed(attribute)
        return self._done[attribute]

    def _transformed(self, attribute: Any) -> Any:
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, TensorSharding):
            return sdy.attribute(self._transform(value), attribute.context)
        if isinstance(value, TensorShardingPerValue):
            shardings = replace(value, shardings=tuple(map(self._transform, value.shardings)))
            return sdy.attribute(shardings, attribute.context)
        return attribute


def _transform_own(op: Any, changed: _Memo) -> None:
    attributes = op.attributes
    for name in list(attributes):
        old = attributes[name]
        if name in _SIGNATURE:
            new = _signature(old, changed)
        elif isinstance(old, SdyAttribute) and name != sdy.SHARDING:
            new = changed(old)
        else:
            continue
        if new != old:
            attributes[name] = new


def _signature(dictionaries: Any, changed: _Memo) -> Any:
    context = dictionaries.context
    new = []
    for dictionary in dictionaries:
        if sdy.SHARDING in dictionary:
            entries = {named.name: named.attr for named in dictionary}
            entries[sdy.SHARDING] = changed(entries[sdy.SHARDING])
            dictionary = ir.DictAttr.get(entries, context)
        new.append(dictionary)
    return ir.ArrayAttr.get(new, context)
