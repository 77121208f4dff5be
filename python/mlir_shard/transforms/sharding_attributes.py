# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changing every sharding in a module, wherever it is an attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from mlir_shard.asm.editor import distinct_attributes, replace_attributes
from mlir_shard.dialects import _sdy_gen, sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue

Transform = Callable[[TensorSharding], TensorSharding]

# Operations of the sdy dialect that have shardings in attributes of their own.
_HOLDERS = tuple(
    f"sdy.{op.mnemonic}"
    for op in _sdy_gen.DIALECT.ops
    if any(one.constraint.attribute in ("sharding", "sharding_per_value") for one in op.attributes)
)


def shardings_in(root: Any) -> Iterator[TensorSharding]:
    """The shardings of `root` and below it that `transform_shardings` would change, in no particular order; those of
    equal attributes once."""
    for attribute in distinct_attributes(root, sdy.SHARDING, _HOLDERS):
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, TensorSharding):
            yield value
        elif isinstance(value, TensorShardingPerValue):
            yield from value.shardings


def transform_shardings(root: Any, transform: Transform) -> None:
    """Replaces each sharding of `root` and below it by `transform` of it; asked in text order, once per distinct
    attribute.

    Shardings are the attribute `sdy.sharding` of an operation, an argument or a result, and the shardings that
    operations of the sdy dialect have in attributes of their own.
    """

    def changed(attribute: Any) -> Any:
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, TensorSharding):
            return sdy.attribute(transform(value), attribute.context)
        if isinstance(value, TensorShardingPerValue):
            shardings = replace(value, shardings=tuple(map(transform, value.shardings)))
            return sdy.attribute(shardings, attribute.context)
        return attribute

    replace_attributes(root, sdy.SHARDING, _HOLDERS, changed)
