# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO: short ways to build its operations, at the current insertion point and location.

The host registers the dialect but has no builders for it. Values are ranked tensors of static shape; what is built
gives back its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.dialects.registered_function import InterfaceError
from mlir_shard.host import ir

Sizes = Sequence[int]


def build(name: str, type_: Any, *operands: Any, **attributes: Any) -> Any:
    """The result of `stablehlo.<name>`, which has one result and no region."""
    return ir.Operation.create(f"stablehlo.{name}", [type_], list(operands), attributes).results[0]


def combining(name: str, type_: Any, operands: Sequence[Any], combiner: str, **attributes: Any) -> Any:
    """As `build`, of an operation with a region that combines two scalars by `stablehlo.<combiner>`."""
    op = ir.Operation.create(f"stablehlo.{name}", [type_], list(operands), attributes, regions=1)
    scalar = tensor(type_.element_type)
    block = op.regions[0].blocks.append(scalar, scalar, arg_locs=[op.location] * 2)
    with ir.InsertionPoint(block):
        ir.Operation.create("stablehlo.return", [], [build(combiner, scalar, *block.arguments)])
    return op.results[0]


def tensor(element_type: Any, *shape: int) -> Any:
    """A tensor type; of a scalar without sizes."""
    return ir.RankedTensorType.get(list(shape), element_type)


def with_shape(type_: Any, shape: Sizes) -> Any:
    """A tensor type with other sizes."""
    return ir.RankedTensorType.get(list(shape), type_.element_type, type_.encoding)


def i64() -> Any:
    """The type of the numbers that count devices and elements."""
    return ir.IntegerType.get_signless(64)


def boolean() -> Any:
    """The type of the elements of masks."""
    return ir.IntegerType.get_signless(1)


def integer(value: int) -> Any:
    """An attribute of type i64."""
    return ir.IntegerAttr.get(i64(), value)


def sizes(values: Sizes) -> Any:
    """An attribute `array<i64: ...>`."""
    return ir.DenseI64ArrayAttr.get(list(values))


def element(type_: Any, value: float) -> Any:
    """The attribute of one integer or floating-point number; InterfaceError where the type has no numbers."""
    if not has_numbers(type_):
        point = ir.InsertionPoint.current
        raise InterfaceError(point.ref_operation or point.block.owner, f"no constant of {type_} is known")
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, float(value))
    return ir.IntegerAttr.get(type_, int(value))


def constant(value: Any) -> Any:
    """The constant of an elements attribute."""
    return build("constant", value.type, value=value)


def has_numbers(element_type: Any) -> bool:
    """Whether `splat` makes constants of an element type: not of a quantized one, say."""
    return isinstance(element_type, ir.ComplexType | ir.FloatType | ir.IntegerType | ir.IndexType)


def splat(type_: Any, value: float) -> Any:
    """A constant of one number all over; of a complex type that number is its real part."""
    if isinstance(type_.element_type, ir.ComplexType):
        return constant(ir.Attribute.parse(f"dense<({float(value)}, 0.0)> : {type_}"))
    return constant(ir.DenseElementsAttr.get_splat(type_, element(type_.element_type, value)))


def numbers(values: Sizes | npt.NDArray[np.int64], type_: Any | None = None) -> Any:
    """A constant vector of integers, of i64 or of another type."""
    if type_ is None or type_ == i64():
        return constant(ir.DenseElementsAttr.get(np.asarray(values, np.int64)))
    if type_ == boolean():
        return constant(ir.DenseElementsAttr.get(np.asarray(values, np.bool_)))
    entries = [ir.IntegerAttr.get(type_, int(value)) for value in values]
    return constant(ir.DenseElementsAttr.get(entries, tensor(type_, len(values))))


def convert(value: Any, element_type: Any) -> Any:
    """The elements in another type. It is built even where that is the type they have."""
    return build("convert", ir.RankedTensorType.get(list(value.type.shape), element_type), value)


def reshape(value: Any, shape: Sizes) -> Any:
    """The same elements in another shape."""
    return build("reshape", with_shape(value.type, shape), value)


def transpose(value: Any, permutation: Sizes) -> Any:
    """Dimension i of the result is dimension `permutation[i]` of the value."""
    shape = [value.type.shape[dim] for dim in permutation]
    return build("transpose", with_shape(value.type, shape), value, permutation=sizes(permutation))


def broadcast(value: Any, shape: Sizes, dims: Sizes = ()) -> Any:
    """The value in a shape whose dimensions `dims` are its own; a scalar goes all over."""
    return build("broadcast_in_dim", with_shape(value.type, shape), value, broadcast_dimensions=sizes(dims))


def dynamic_slice(value: Any, starts: Sequence[Any], shape: Sizes) -> Any:
    """As many elements as `shape` says, from where scalars say."""
    return build("dynamic_slice", with_shape(value.type, shape), value, *starts, slice_sizes=sizes(shape))


def slice_(value: Any, starts: Sizes, limits: Sizes, strides: Sizes | None = None) -> Any:
    """The elements from `starts` up to `limits`, each or every so many."""
    steps = strides or [1] * len(starts)
    shape = [-(-(limit - start) // step) for start, limit, step in zip(starts, limits, steps, strict=True)]
    attributes = {"start_indices": sizes(starts), "limit_indices": sizes(limits), "strides": sizes(steps)}
    return build("slice", with_shape(value.type, shape), value, **attributes)


def pad(value: Any, padding: Any, low: Sizes, high: Sizes, interior: Sizes) -> Any:
    """The value with padding in front of, behind and between the elements of each dimension; negative cuts off."""
    amounts = zip(value.type.shape, low, high, interior, strict=True)
    shape = [before + size + max(0, size - 1) * between + after for size, before, after, between in amounts]
    attributes = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    return build(
        "pad",
        with_shape(value.type, shape),
        value,
        padding,
        **{name: sizes(amount) for name, amount in attributes.items()},
    )


def concatenate(values: Sequence[Any], dim: int) -> Any:
    """The values one behind the other along a dimension."""
    shape = list(values[0].type.shape)
    shape[dim] = sum(value.type.shape[dim] for value in values)
    return build("concatenate", with_shape(values[0].type, shape), *values, dimension=integer(dim))


def compare(direction: str, left: Any, right: Any) -> Any:
    """The mask of where the comparison (EQ, GE, LE ...) holds."""
    type_ = ir.RankedTensorType.get(list(left.type.shape), boolean())
    return build("compare", type_, left, right, comparison_direction=ir.Attribute.parse(_DIRECTION.format(direction)))


def select(mask: Any, yes: Any, no: Any) -> Any:
    """`yes` where the mask is true, else `no`."""
    return build("select", yes.type, mask, yes, no)


def channel(number: int) -> Any:
    """The attribute of a channel between devices."""
    return ir.Attribute.parse(f"#stablehlo.channel_handle<handle = {number}, type = 1>")


_DIRECTION = "#stablehlo<comparison_direction {}>"
