# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The StableHLO that pieces of tensors are cut and put together with, at the current insertion point and location.

Operations that have a tensor for a result take its sharding, None for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue

Sizes = Sequence[int]


def operation(name: str, type_: Any, *operands: Any, sharding: TensorSharding | None = None, **attributes: Any) -> Any:
    """The result of an operation that has one."""
    if sharding is not None:
        attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue((sharding,)))
    return ir.Operation.create(name, [type_], list(operands), attributes).results[0]


def with_shape(type_: Any, shape: Sizes) -> Any:
    """A tensor type with other sizes."""
    return ir.RankedTensorType.get(list(shape), type_.element_type)


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
    return ir.RankedTensorType.get([], element_type)


def index_type() -> Any:
    """The type of the scalars that count devices and elements."""
    return scalar_type(ir.IntegerType.get_signless(64))


def scalar_constant(value: Any) -> Any:
    """A constant of one element, from an attribute."""
    type_ = scalar_type(value.type)
    return operation("stablehlo.constant", type_, value=ir.DenseElementsAttr.get_splat(type_, value))


def index_constant(value: int) -> Any:
    """A constant of `index_type`."""
    return scalar_constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value))


def index_table(values: Sizes, index: Any) -> Any:
    """The entry of a constant table that a scalar says."""
    element = ir.IntegerType.get_signless(64)
    entries = ir.DenseElementsAttr.get([ir.IntegerAttr.get(element, value) for value in values], _vector(len(values)))
    table = operation("stablehlo.constant", _vector(len(values)), value=entries)
    entry = operation("stablehlo.dynamic_slice", _vector(1), table, index, slice_sizes=_array([1]))
    return operation("stablehlo.reshape", index_type(), entry)


def pad(
    value: Any, padding: Any, low: Sizes, high: Sizes, interior: Sizes, sharding: TensorSharding | None = None
) -> Any:
    """The value with padding in front of, behind and between the elements of each dimension."""
    sizes = zip(value.type.shape, low, high, interior, strict=True)
    shape = [before + size + max(0, size - 1) * between + after for size, before, after, between in sizes]
    type_ = with_shape(value.type, shape)
    amounts = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    attributes = {name: _array(amount) for name, amount in amounts.items()}
    return operation("stablehlo.pad", type_, value, padding, sharding=sharding, **attributes)


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
    steps = strides or [1] * len(starts)
    shape = [-(-(limit - start) // step) for start, limit, step in zip(starts, limits, steps, strict=True)]
    type_ = with_shape(value.type, shape)
    attributes = {"start_indices": _array(starts), "limit_indices": _array(limits), "strides": _array(steps)}
    return operation("stablehlo.slice", type_, value, sharding=sharding, **attributes)


def concatenate(values: Sequence[Any], dim: int, sharding: TensorSharding | None) -> Any:
    """The values one behind the other along a dimension."""
    first = values[0].type
    type_ = with_size(first, dim, sum(value.type.shape[dim] for value in values))
    dimension = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
    return operation("stablehlo.concatenate", type_, *values, sharding=sharding, dimension=dimension)


def dynamic_piece(value: Any, starts: Sequence[Any], shape: Sizes, sharding: TensorSharding | None) -> Any:
    """As many elements as `shape` says, from where scalars say."""
    type_ = with_shape(value.type, shape)
    return operation("stablehlo.dynamic_slice", type_, value, *starts, sharding=sharding, slice_sizes=_array(shape))


def collective_permute(
    value: Any, pairs: Sequence[tuple[int, int]], channel: int, sharding: TensorSharding | None = None
) -> Any:
    """What the device that is paired with this one as its source holds; zeros where there is none."""
    element = ir.IntegerType.get_signless(64)
    type_ = ir.RankedTensorType.get([len(pairs), 2], element)
    entries = [ir.IntegerAttr.get(element, device) for pair in pairs for device in pair]
    attributes = {
        "source_target_pairs": ir.DenseElementsAttr.get(entries, type_),
        "channel_handle": ir.Attribute.parse(f"#stablehlo.channel_handle<handle = {channel}, type = 1>"),
    }
    return operation("stablehlo.collective_permute", value.type, value, sharding=sharding, **attributes)


def broadcast(scalar: Any, type_: Any, sharding: TensorSharding | None = None) -> Any:
    """A tensor of one scalar all over."""
    return operation("stablehlo.broadcast_in_dim", type_, scalar, sharding=sharding, broadcast_dimensions=_array([]))


def _array(values: Sizes) -> Any:
    return ir.DenseI64ArrayAttr.get(list(values))


def _vector(size: int) -> Any:
    return ir.RankedTensorType.get([size], ir.IntegerType.get_signless(64))
