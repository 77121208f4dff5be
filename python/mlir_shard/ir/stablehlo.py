# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builders of StableHLO operations, at the current insertion point and location.

The host registers the dialect but has no builders for it. Values are ranked tensors of static shape. A builder returns
the result of the operation, with the sharding `sharding` if one is given.
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
    """Returns the target of a `stablehlo.custom_call`."""
    target: str = op.attributes["call_target_name"].value
    return target


def build(name: str, type_: Any, *operands: Any, sharding: TensorSharding | None = None, **attributes: Any) -> Any:
    """Builds `stablehlo.<name>`, an operation with one result and no region."""
    result = ir.Operation.create(f"stablehlo.{name}", [type_], list(operands), attributes).results[0]
    if sharding is not None:
        sdy.set_sharding(result, sharding)
    return result


def binary(name: str, left: Any, right: Any, sharding: TensorSharding | None = None) -> Any:
    """Builds `stablehlo.<name>` of two values of the same type, which is also the type of the result."""
    return build(name, left.type, left, right, sharding=sharding)


def combining(name: str, type_: Any, operands: Sequence[Any], combiner: str, **attributes: Any) -> Any:
    """Builds `stablehlo.<name>` with a region that combines two scalars by `stablehlo.<combiner>`."""
    op = ir.Operation.create(f"stablehlo.{name}", [type_], list(operands), attributes, regions=1)
    scalar = tensor(type_.element_type)
    block = op.regions[0].blocks.append(scalar, scalar, arg_locs=[op.location] * 2)
    with ir.InsertionPoint(block):
        ir.Operation.create("stablehlo.return", [], [build(combiner, scalar, *block.arguments)])
    return op.results[0]


def tensor(element_type: Any, *shape: int) -> Any:
    """Returns a tensor type with the sizes `shape`, that of a scalar if none exist."""
    return ir.RankedTensorType.get(list(shape), element_type)


def with_shape(type_: Any, shape: Sizes) -> Any:
    """Returns a tensor type with its sizes replaced."""
    return ir.RankedTensorType.get(list(shape), type_.element_type, type_.encoding)


def with_size(type_: Any, dim: int, size: int) -> Any:
    """Returns a tensor type with the size of one dimension replaced."""
    return with_shape(type_, [*type_.shape[:dim], size, *type_.shape[dim + 1 :]])


def i64() -> Any:
    """Returns i64, the type of the numbers of devices and elements."""
    return ir.IntegerType.get_signless(64)


def boolean() -> Any:
    """Returns i1, the type of the elements of masks."""
    return ir.IntegerType.get_signless(1)


def integer(value: int) -> Any:
    """Returns an attribute of type i64."""
    return ir.IntegerAttr.get(i64(), value)


def sizes(values: Sizes) -> Any:
    """Returns an attribute `array<i64: ...>`."""
    return ir.DenseI64ArrayAttr.get(list(values))


def element(type_: Any, value: float) -> Any:
    """Returns the attribute of an integer or floating-point number. Raises InterfaceError for a non-numeric type."""
    if not has_numbers(type_):
        point = ir.InsertionPoint.current
        raise InterfaceError(point.ref_operation or point.block.owner, f"no constant of type {type_} is known")
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, float(value))
    return ir.IntegerAttr.get(type_, int(value))


def constant(value: Any) -> Any:
    """Builds the constant of an elements attribute."""
    return build("constant", value.type, value=value)


def has_numbers(element_type: Any) -> bool:
    """Returns whether `splat` can build constants of an element type; it cannot for a quantized type, for example."""
    return isinstance(element_type, ir.ComplexType | ir.FloatType | ir.IntegerType | ir.IndexType)


def splat(type_: Any, value: float) -> Any:
    """Builds a constant with one number in all elements; for a complex type the number is the real part."""
    if isinstance(type_.element_type, ir.ComplexType):
        return constant(ir.Attribute.parse(f"dense<({float(value)}, 0.0)> : {type_}"))
    return constant(ir.DenseElementsAttr.get_splat(type_, element(type_.element_type, value)))


def has_zero(element_type: Any) -> bool:
    """Returns whether `scalar` can build a zero of a type, that is, for integer and floating-point types."""
    return isinstance(element_type, ir.FloatType | ir.IntegerType)


def scalar(value: float, element_type: Any | None = None) -> Any:
    """Builds a constant of rank 0, of i64 by default."""
    return splat(tensor(i64() if element_type is None else element_type), value)


def numbers(values: Sizes | npt.NDArray[np.int64], type_: Any | None = None) -> Any:
    """Builds a constant vector of integers, by default of i64."""
    if type_ is None or type_ == i64():
        return constant(ir.DenseElementsAttr.get(np.asarray(values, np.int64)))
    if type_ == boolean():
        return constant(ir.DenseElementsAttr.get(np.asarray(values, np.bool_)))
    entries = [ir.IntegerAttr.get(type_, int(value)) for value in values]
    return constant(ir.DenseElementsAttr.get(entries, tensor(type_, len(values))))


def entry(values: Sizes | npt.NDArray[np.int64], index: Any) -> Any:
    """Looks up an entry of a constant table at an index (a scalar), as a scalar of i64."""
    return reshape(dynamic_slice(numbers(values), [index], [1]), [])


def device_number(*, by_replica: bool) -> Any:
    """Builds the number of the current device, a scalar of i64: its replica id if `by_replica`, or its partition id."""
    own = build("replica_id" if by_replica else "partition_id", tensor(ir.IntegerType.get_unsigned(32)))
    return convert(own, i64())


def convert(value: Any, element_type: Any) -> Any:
    """Converts the elements to another type. The operation is built even if they already have that type."""
    return build("convert", ir.RankedTensorType.get(list(value.type.shape), element_type), value)


def reshape(value: Any, shape: Sizes) -> Any:
    """Reshapes a value."""
    return build("reshape", with_shape(value.type, shape), value)


def transpose(value: Any, permutation: Sizes) -> Any:
    """Transposes a value: dimension i of the result is dimension `permutation[i]` of the value."""
    shape = [value.type.shape[dim] for dim in permutation]
    return build("transpose", with_shape(value.type, shape), value, permutation=sizes(permutation))


def broadcast(value: Any, shape: Sizes, dims: Sizes = (), sharding: TensorSharding | None = None) -> Any:
    """Broadcasts a value to a shape. `dims` are the dimensions of the result that the value has, none for a scalar."""
    type_ = with_shape(value.type, shape)
    return build("broadcast_in_dim", type_, value, sharding=sharding, broadcast_dimensions=sizes(dims))


def dynamic_slice(value: Any, starts: Sequence[Any], shape: Sizes, sharding: TensorSharding | None = None) -> Any:
    """Builds the slice of `shape` that starts at the given scalars."""
    type_ = with_shape(value.type, shape)
    return build("dynamic_slice", type_, value, *starts, sharding=sharding, slice_sizes=sizes(shape))


def slice_(
    value: Any, starts: Sizes, limits: Sizes, strides: Sizes | None = None, sharding: TensorSharding | None = None
) -> Any:
    """Slices a value from `starts` up to, not including, `limits`, by default with strides 1."""
    steps = strides or [1] * len(starts)
    shape = [-(-(limit - start) // step) for start, limit, step in zip(starts, limits, steps, strict=True)]
    attributes = {"start_indices": sizes(starts), "limit_indices": sizes(limits), "strides": sizes(steps)}
    return build("slice", with_shape(value.type, shape), value, sharding=sharding, **attributes)


def gather(
    table: Any,
    starts: Any,
    computed: Sizes,
    batching: Sequence[tuple[int, int]] = (),
    sharding: TensorSharding | None = None,
) -> Any:
    """Builds the gather of elements, with its batch dimensions first.

    Args:
        table: the tensor to gather from.
        starts: the indices, in the last dimension.
        computed: the dimensions of the table that are indexed.
        batching: pairs of a batching dimension of the table and the matching dimension of the indices.
        sharding: the sharding of the result.
    """
    single = {*computed, *(dim for dim, _ in batching)}
    offsets = [dim for dim in range(table.type.rank) if dim not in single]
    batch_shape = list(starts.type.shape)[:-1]
    numbers = (
        f"offset_dims = {[len(batch_shape) + number for number in range(len(offsets))]}, "
        f"collapsed_slice_dims = {list(computed)}, operand_batching_dims = {[dim for dim, _ in batching]}, "
        f"start_indices_batching_dims = {[place for _, place in batching]}, start_index_map = {list(computed)}, "
        f"index_vector_dim = {len(batch_shape)}"
    )
    return build(
        "gather",
        with_shape(table.type, [*batch_shape, *(table.type.shape[dim] for dim in offsets)]),
        table,
        starts,
        sharding=sharding,
        dimension_numbers=ir.Attribute.parse(f"#stablehlo.gather<{numbers}>"),
        slice_sizes=sizes([1 if dim in single else size for dim, size in enumerate(table.type.shape)]),
    )


def along(value: Any, dim: int, start: int, limit: int, sharding: TensorSharding | None = None) -> Any:
    """Slices one dimension from `start` up to `limit`. Returns the value itself if that is the entire dimension."""
    shape = list(value.type.shape)
    if (start, limit) == (0, shape[dim]):
        return value
    starts, limits = [0] * len(shape), shape
    starts[dim], limits[dim] = start, limit
    return slice_(value, starts, limits, sharding=sharding)


def first(value: Any, shape: Sizes, sharding: TensorSharding | None = None) -> Any:
    """Builds the slice of `shape` that starts at zero. Returns the value itself if it already has that shape."""
    if list(shape) == list(value.type.shape):
        return value
    return slice_(value, [0] * len(shape), shape, sharding=sharding)


def pad(
    value: Any, padding: Any, low: Sizes, high: Sizes, interior: Sizes, sharding: TensorSharding | None = None
) -> Any:
    """Pads a value before (low), after (high) and between (interior) the elements; negative low or high trims it."""
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
    """Pads a value at the end of each dimension to a shape."""
    none = [0] * len(shape)
    high = [new - old for new, old in zip(shape, value.type.shape, strict=True)]
    return pad(value, padding, none, high, none, sharding)


def concatenate(values: Sequence[Any], dim: int, sharding: TensorSharding | None = None) -> Any:
    """Concatenates values along a dimension."""
    shape = list(values[0].type.shape)
    shape[dim] = sum(value.type.shape[dim] for value in values)
    type_ = with_shape(values[0].type, shape)
    return build("concatenate", type_, *values, sharding=sharding, dimension=integer(dim))


def compare(direction: str, left: Any, right: Any, sharding: TensorSharding | None = None) -> Any:
    """Compares two values by `direction` (EQ, GE, LE ...), elementwise; the result is a mask."""
    type_ = ir.RankedTensorType.get(list(left.type.shape), boolean())
    comparison = ir.Attribute.parse(_DIRECTION.format(direction))
    return build("compare", type_, left, right, sharding=sharding, comparison_direction=comparison)


def select(mask: Any, yes: Any, no: Any, sharding: TensorSharding | None = None) -> Any:
    """Selects `yes` where the mask is true, else `no`."""
    return build("select", yes.type, mask, yes, no, sharding=sharding)


def select_all(flag: Any, yes: Any, no: Any) -> Any:
    """Selects `yes` if `flag`, a mask of one element and rank 0 or 1, is true, else `no`, a value or a number."""
    shape = list(yes.type.shape)
    mask = broadcast(flag, shape, [0] * flag.type.rank) if shape else reshape(flag, ())
    return select(mask, yes, no if isinstance(no, ir.Value) else splat(yes.type, no))


@cache
def _channel_handle() -> Any:
    return host.module("_mlir_libs._stablehlo").ChannelHandle


def channel(number: int) -> Any:
    """Returns the attribute of a channel between devices."""
    return _channel_handle().get(number, 1)


def channel_numbers(attribute: Any) -> tuple[int, int]:
    """Returns the number and the type of a channel."""
    handle = _channel_handle()(attribute)
    return handle.handle, handle.channel_type


_DIRECTION = "#stablehlo<comparison_direction {}>"
