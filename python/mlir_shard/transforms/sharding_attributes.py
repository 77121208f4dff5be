# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changing every sharding in a module, wherever it is an attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from mlir_shard.asm.module import native_host
from mlir_shard.dialects import _sdy_gen, sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.operations import operations_named

Transform = Callable[[TensorSharding], TensorSharding]

# The attributes of a function that hold what its arguments and results have.
_SIGNATURE = ("arg_attrs", "res_attrs")
# Operations of the sdy dialect that have shardings in attributes of their own.
_HOLDERS = tuple(
    f"sdy.{op.mnemonic}"
    for op in _sdy_gen.DIALECT.ops
    if any(one.constraint.attribute in ("sharding", "sharding_per_value") for one in op.attributes)
)


def shardings_in(root: Any) -> Iterator[TensorSharding]:
    """The shardings that `transform_shardings` would change, each at least once, in no particular order."""
    for attribute in _attributes(root.operation):
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, TensorSharding):
            yield value
        elif isinstance(value, TensorShardingPerValue):
            yield from value.shardings


def _attributes(root: Any) -> Iterator[Any]:
    for capsule, _, place, index in native_host().attribute_uses(root._CAPIPtr, [(sdy.SHARDING, True)], []):
        attributes = ir.Operation._CAPICreate(capsule).attributes
        # Places after the operation itself are those of a signature, in its order.
        yield attributes[sdy.SHARDING] if place == 0 else attributes[_SIGNATURE[place - 1]][index][sdy.SHARDING]
    for holder in operations_named(root, *_HOLDERS):
        yield from (holder.attributes[name] for name in holder.attributes if name != sdy.SHARDING)


def transform_shardings(root: Any, transform: Transform) -> None:
    """Replaces each sharding below `root` by `transform` of it; asked once per distinct attribute, in text order.

    Shardings are the attribute `sdy.sharding` of an operation, an argument or a result, and the shardings that
    operations of the sdy dialect have in attributes of their own.
    """
    changed = _Memo(transform)
    native_host().replace_attributes(
        root.operation._CAPIPtr,
        sdy.SHARDING,
        lambda capsule: changed(ir.Attribute._CAPICreate(capsule).maybe_downcast())._CAPIPtr,
        (*_HOLDERS, "func.func"),
        lambda capsule: _transform_own(ir.Operation._CAPICreate(capsule), changed),
    )


class _Memo:
    """What a transformation makes of shardings, and of the dictionaries that arguments and results have them in."""

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
        if isinstance(attribute, ir.DictAttr) and sdy.SHARDING in attribute:
            entries = {named.name: named.attr for named in attribute}
            return ir.DictAttr.get(entries | {sdy.SHARDING: self(entries[sdy.SHARDING])}, attribute.context)
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
    return ir.ArrayAttr.get([changed(dictionary) for dictionary in dictionaries], dictionaries.context)
