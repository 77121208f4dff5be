# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO: short ways to build its operations, at the current insertion point and location.

The host registers the dialect but has no builders for it. Values are ranked tensors of static shape; what is built
gives back its result, which has the sharding `sharding` if one is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mlir_shard import host
from mlir_shard.deferred import numpy as np
from mlir_shard.dialects import sdy
from mlir_shard.dialects.registered_function import InterfaceError
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding

if TYPE_CHECKING:
    import numpy.typing as npt

Sizes = Sequence[int]


def call_target(op: Any) -> str:
    """The target of a `stablehlo.custom_call`."""
    target: str = op.attributes["call_target_name"].value
    return target


def build(name: str, type_: Any, *operands: Any, sharding: TensorSharding | None = None, **attributes: Any) -> Any:
    """The result of `stablehlo.<name>`, which has one result and no region."""
    result = ir.Operation.create(f"stablehlo.{name}", [type_], list(operands), attributes).results[0]
    if sharding is not None:
        sdy.set_sharding(result, sharding)
    return result


def binary(name: str, left: Any, right: Any, sharding: TensorSharding | None = None) -> Any:
    """The result of `stablehlo.<name>` of two values of the same type, which has it too."""
    return build(name, left.type, left, right, sharding=sharding)


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


def with_size(type_: Any, dim: int, size: int) -> Any:
    """A tensor type with another size of one dimension."""
    return with_shape(type_, [*type_.shape[:dim], size, *type_.shape[dim + 1 :]])


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
    """Whether `splat` makes constants of an element type, unlike of a quantized one."""
    return isinstance(element_type, ir.ComplexType | ir.FloatType | ir.IntegerType | ir.IndexType)


def splat(type_: Any, value: float) -> Any:
    """A constant of one number all over; of a complex type that number is its real part."""
    if isinstance(type_.element_type, ir.ComplexType):
        return constant(ir.Attribute.parse(f"dense<({float(value)}, 0.0)> : {type_}"))
    return constant(ir.DenseElementsAttr.get_splat(type_, element(type_.element_type, value)))


def has_zero(element_type: Any) -> bool:
    """Whether `scalar` can build a zero of a type: one of signless or signed integers or of floating-point numbers."""
    return isinstance(element_type, ir.FloatType | ir.IntegerType)


def scalar(value: float, element_type: Any | None = None) -> Any:
    """A constant of one element and no dimensions, of i64 by default."""
    return splat(tensor(i64() if element_type is None else element_type), value)


def numbers(values: Sizes | npt.NDArray[np.int64], type_: Any | None = None) -> Any:
    """A constant vector of integers, of i64 or of another type."""
    if type_ is None or type_ == i64():
        return constant(ir.DenseElementsAttr.get(np.asarray(values, np.int64)))
    if type_ == boolean():
        return constant(ir.DenseElementsAttr.get(np.asarray(values, np.bool_)))
    entries = [ir.IntegerAttr.get(type_, int(value)) for value in values]
    return constant(ir.DenseElementsAttr.get(entries, tensor(type_, len(values))))


def entry(values: Sizes | npt.NDArray[np.int64], index: Any) -> Any:
    """The integer, a scalar of i64, at an index (a scalar) of a constant table."""
    return reshape(dynamic_slice(numbers(values), [index], [1]), [])


def device_number(*, by_replica: bool) -> Any:
    """The number of the device that runs the program, a scalar of i64: its replica's, or else its partition's."""
    own = build("replica_id" if by_replica else "partition_id", tensor(ir.IntegerType.get_unsigned(32)))
    return convert(own, i64())


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


def broadcast(value: Any, shape: Sizes, dims: Sizes = (), sharding: TensorSharding | None = None) -> Any:
    """The value in a shape whose dimensions `dims` are its own; a scalar goes all over."""
    type_ = with_shape(value.type, shape)
    return build("broadcast_in_dim", type_, value, sharding=sharding, broadcast_dimensions=sizes(dims))


def dynamic_slice(value: Any, starts: Sequence[Any], shape: Sizes, sharding: TensorSharding | None = None) -> Any:
    """The slice of `shape` that starts at the given scalars."""
    type_ = with_shape(value.type, shape)
    return build("dynamic_slice", type_, value, *starts, sharding=sharding, slice_sizes=sizes(shape))


def slice_(
    value: Any, starts: Sizes, limits: Sizes, strides: Sizes | None = None, sharding: TensorSharding | None = None
) -> Any:
    """The elements from `starts` up to `limits`, each or every so many."""
    steps = strides or [1] * len(starts)
    shape = [-(-(limit - start) // step) for start, limit, step in zip(starts, limits, steps, strict=True)]
    attributes = {"start_indices": sizes(starts), "limit_indices": sizes(limits), "strides": sizes(steps)}
    return build("slice", with_shape(value.type, shape), value, sharding=sharding, **attributes)


def along(value: Any, dim: int, start: int, limit: int, sharding: TensorSharding | None = None) -> Any:
    """The elements of a dimension from `start` up to `limit`; the value itself where that is all."""
    shape = list(value.type.shape)
    if (start, limit) == (0, shape[dim]):
        return value
    starts, limits = [0] * len(shape), shape
    starts[dim], limits[dim] = start, limit
    return slice_(value, starts, limits, sharding=sharding)


def first(value: Any, shape: Sizes, sharding: TensorSharding | None = None) -> Any:
    """The slice of `shape` that starts at zero; the value itself where that is all of it."""
    if list(shape) == list(value.type.shape):
        return value
    return slice_(value, [0] * len(shape), shape, sharding=sharding)


def pad(
    value: Any, padding: Any, low: Sizes, high: Sizes, interior: Sizes, sharding: TensorSharding | None = None
) -> Any:
    """The value with padding in front of, behind and between the elements of each dimension; negative cuts off."""
    amounts = zip(value.type.shape, low, high, interior, strict=True)
    shape = [before + size + max(0, size - 1) * between + after for size, before, after, between in amounts]
    attributes = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    return build(
        "pad",
        with_shape(value.type, shape),
        value,
        padding,
        sharding=sharding,
        **{name: sizes(amount) for name, amount in attributes.items()},
    )


def pad_behind(value: Any, padding: Any, shape: Sizes, sharding: TensorSharding | None = None) -> Any:
    """The value padded behind to a shape."""
    none = [0] * len(shape)
    high = [new - old for new, old in zip(shape, value.type.shape, strict=True)]
    return pad(value, padding, none, high, none, sharding)


def concatenate(values: Sequence[Any], dim: int, sharding: TensorSharding | None = None) -> Any:
    """The values one behind the other along a dimension."""
    shape = list(values[0].type.shape)
    shape[dim] = sum(value.type.shape[dim] for value in values)
    type_ = with_shape(values[0].type, shape)
    return build("concatenate", type_, *values, sharding=sharding, dimension=integer(dim))


def compare(direction: str, left: Any, right: Any, sharding: TensorSharding | None = None) -> Any:
    """The mask of where the comparison (EQ, GE, LE ...) holds."""
    type_ = ir.RankedTensorType.get(list(left.type.shape), boolean())
    comparison = ir.Attribute.parse(_DIRECTION.format(direction))
    return build("compare", type_, left, right, sharding=sharding, comparison_direction=comparison)


def select(mask: Any, yes: Any, no: Any, sharding: TensorSharding | None = None) -> Any:
    """`yes` where the mask is true, else `no`."""
    return build("select", yes.type, mask, yes, no, sharding=sharding)


def select_all(flag: Any, yes: Any, no: Any) -> Any:
    """`yes` if a mask of one element, of rank 0 or 1, is true, else `no`, a value or a number in all its elements."""
    shape = list(yes.type.shape)
    mask = broadcast(flag, shape, [0] * flag.type.rank) if shape else reshape(flag, ())
    return select(mask, yes, no if isinstance(no, ir.Value) else splat(yes.type, no))


@cache
def _channel_handle() -> Any:
    return host.module("_mlir_libs._stablehlo").ChannelHandle


def channel(number: int) -> Any:
    """The attribute of a channel between devices."""
    return _channel_handle().get(number, 1)


def channel_numbers(attribute: Any) -> tuple[int, int]:
    """Returns the number and the type of a channel."""
    handle = _channel_handle()(attribute)
    return handle.handle, handle.channel_type


_DIRECTION = "#stablehlo<comparison_direction {}>"
