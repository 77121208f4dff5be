# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The StableHLO that pieces of tensors are cut and put together with, at the current insertion point and location.

Operations that have a tensor for a result take its sharding, None for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlir_shard.dialects import sdy, stablehlo
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue

Sizes = Sequence[int]


def operation(name: str, type_: Any, *operands: Any, sharding: TensorSharding | None = None, **attributes: Any) -> Any:
    """The result of an operation that has one."""
    value = ir.Operation.create(name, [type_], list(operands), attributes).results[0]
    return _lying(value, sharding)


def with_shape(type_: Any, shape: Sizes) -> Any:
    """A tensor type with other sizes."""
    return stablehlo.with_shape(type_, shape)


def with_size(type_: Any, dim: int, size: int) -> Any:
    """A tensor type with another size of one dimension."""
    return with_shape(type_, [*type_.shape[:dim], size, *type_.shape[dim + 1 :]])


def zero(element_type: Any) -> Any | None:
    """The attribute that is zero of a type; None where it has none."""
    if isinstance(element_type, ir.FloatType):
        return ir.FloatAttr.get(element_type, 0.0)
    return ir.IntegerAttr.get(element_type, 0) if isinstance(element_type, ir.IntegerType) else None


def scalar_type(element_type: Any) -> Any:
    """The type of a tensor of one element and no dimensions."""
    return stablehlo.tensor(element_type)


def index_type() -> Any:
    """The type of the scalars that count devices and elements."""
    return stablehlo.tensor(stablehlo.i64())


def scalar_constant(value: Any) -> Any:
    """A constant of one element, from an attribute."""
    return stablehlo.constant(ir.DenseElementsAttr.get_splat(scalar_type(value.type), value))


def index_constant(value: int) -> Any:
    """A constant of `index_type`."""
    return scalar_constant(stablehlo.integer(value))


def index_table(values: Sizes, index: Any) -> Any:
    """The entry of a constant table that a scalar says."""
    return stablehlo.reshape(stablehlo.dynamic_slice(stablehlo.numbers(values), [index], [1]), [])


def pad(
    value: Any, padding: Any, low: Sizes, high: Sizes, interior: Sizes, sharding: TensorSharding | None = None
) -> Any:
    """The value with padding in front of, behind and between the elements of each dimension."""
    return _lying(stablehlo.pad(value, padding, low, high, interior), sharding)


def pad_behind(value: Any, padding: Any, shape: Sizes, sharding: TensorSharding | None) -> Any:
    """The value, padded behind to a shape."""
    none = [0] * len(shape)
    return pad(
        value, padding, none, [new - old for new, old in zip(shape, value.type.shape, strict=True)], none, sharding
    )


def piece(
    value: Any, starts: Sizes, limits: Sizes, sharding: TensorSharding | None, strides: Sizes | None = None
) -> Any:
    """The elements from `starts` up to `limits`, each or every so many."""
    return _lying(stablehlo.slice_(value, starts, limits, strides), sharding)


def concatenate(values: Sequence[Any], dim: int, sharding: TensorSharding | None) -> Any:
    """The values one behind the other along a dimension."""
    return _lying(stablehlo.concatenate(values, dim), sharding)


def dynamic_piece(value: Any, starts: Sequence[Any], shape: Sizes, sharding: TensorSharding | None) -> Any:
    """As many elements as `shape` says, from where scalars say."""
    return _lying(stablehlo.dynamic_slice(value, starts, shape), sharding)


def collective_permute(
    value: Any, pairs: Sequence[tuple[int, int]], channel: int, sharding: TensorSharding | None = None
) -> Any:
    """What the device that is paired with this one as its source holds; zeros where there is none."""
    attributes = {
        "source_target_pairs": ir.DenseElementsAttr.get(np.array(pairs, np.int64).reshape(-1, 2)),
        "channel_handle": stablehlo.channel(channel),
    }
    return _lying(stablehlo.build("collective_permute", value.type, value, **attributes), sharding)


def broadcast(scalar: Any, type_: Any, sharding: TensorSharding | None = None) -> Any:
    """A tensor of one scalar all over."""
    return _lying(stablehlo.broadcast(scalar, type_.shape), sharding)


def _lying(value: Any, sharding: TensorSharding | None) -> Any:
    """The value, whose operation gets its sharding."""
    if sharding is not None:
        value.owner.attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue((sharding,)))
    return value
