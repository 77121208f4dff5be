# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builders and readers of operations of upstream's dialects `shard` and `tensor`, on static shapes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import in_modules
from mlir_shard.sharding import ReductionOp

_shard = host.dialect("shard")
DYNAMIC = -(2**63)
# The attribute of a grid that was an sdy mesh which has the names of the axes, to restore them.
AXIS_NAMES = "mlir_shard.axis_names"


def grid(name: str, shape: Sequence[int]) -> Any:
    """Builds a `shard.grid` of `shape` at the current insertion point."""
    return _shard.GridOp(name, list(shape)).operation


def grid_shape(op: Any) -> tuple[int, ...]:
    """Returns the shape of a `shard.grid`; a dynamic size is `DYNAMIC`."""
    return tuple(elements(op.operation.attributes["shape"]))


def grids(module: Any) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the grids of a module by name."""
    return {op.attributes["sym_name"].value: grid_shape(op) for op in in_modules(module, "shard.grid")}


def grid_axes(op: Any) -> tuple[int, ...]:
    """Returns the grid axes along which a collective communicates; empty if it has no such attribute."""
    return tuple(elements(op.attributes["grid_axes"])) if "grid_axes" in op.attributes else ()


def split_axes(op: Any) -> tuple[tuple[int, ...], ...]:
    """Returns the grid axes of each dimension in a `shard.sharding`; dimensions after the last are not split."""
    text = str(op.operation.attributes["split_axes"])
    # The bindings have no accessors for this attribute; it prints as #shard<axisarray[[0, 1], []]>.
    listed = text.removeprefix("#shard<axisarray").removesuffix(">")
    return tuple(tuple(axes) for axes in json.loads(listed))


def sharding(grid_name: str, axes_per_dim: Sequence[Sequence[int]], offsets: Sequence[int] = ()) -> Any:
    """Builds a `shard.sharding` at the current insertion point, with the grid axes of each dimension.

    Dimensions after the last are not split. `offsets` has, for each split dimension, the start of every shard and the
    end of the last; if it is empty, all shards are of equal size.
    """
    # Upstream cannot read the attribute without any dimension, not even for a scalar.
    split = [list(axes) for axes in axes_per_dim] or [[]]
    attribute = ir.Attribute.parse(f"#shard<axisarray{split}>")
    return _shard.ShardingOp(grid_name, attribute, [], [], static_sharded_dims_offsets=list(offsets)).result


def annotate(value: Any, sharding: Any, *, for_users: bool) -> Any:
    """Builds a `shard.shard` at the current insertion point, which annotates the value, or its use if `for_users`."""
    return _shard.ShardOp(value, sharding, annotate_for_users=for_users).result


def all_reduce(name: str, value: Any, axes: Sequence[int], reduction: ReductionOp | str) -> Any:
    """Reduces `value` over the devices along `axes`, by one of upstream's kinds; the type stays the same."""
    return _shard.AllReduceOp(value.type, name, value, grid_axes=_axes(axes), reduction=_partial(reduction)).result


def all_gather(name: str, value: Any, axes: Sequence[int], dim: int, groups: int) -> Any:
    """Concatenates the `value` of all `groups` devices along `axes` in dimension `dim`."""
    type_ = _with_size(value.type, dim, value.type.shape[dim] * groups)
    return _shard.AllGatherOp(type_, name, value, dim, grid_axes=_axes(axes)).result


def all_slice(name: str, value: Any, axes: Sequence[int], dim: int, groups: int) -> Any:
    """Slices `value` into `groups` shards along `dim`, one for each device along `axes`; returns this device's shard.

    Raises ValueError if the size is not a multiple of `groups`.
    """
    type_ = resized(value.type, _divided(value.type, dim, groups))
    return _shard.AllSliceOp(type_, name, value, dim, grid_axes=_axes(axes)).result


def all_to_all(name: str, value: Any, axes: Sequence[int], split_dim: int, concat_dim: int, groups: int) -> Any:
    """Exchanges shards along `split_dim` among the `groups` devices along `axes`, and joins them along `concat_dim`.

    Raises ValueError if the size is not a multiple of `groups`.
    """
    shape = _divided(value.type, split_dim, groups)
    shape[concat_dim] *= groups
    return _shard.AllToAllOp(
        resized(value.type, shape), name, value, split_dim, concat_dim, grid_axes=_axes(axes)
    ).result


def reduce_scatter(name: str, value: Any, axes: Sequence[int], dim: int, groups: int, reduction: ReductionOp) -> Any:
    """Reduces `value` over the `groups` devices along `axes`; returns this device's shard along `dim`.

    Raises ValueError if the size is not a multiple of `groups`.
    """
    type_, kind = resized(value.type, _divided(value.type, dim, groups)), _partial(reduction)
    return _shard.ReduceScatterOp(type_, name, value, dim, grid_axes=_axes(axes), reduction=kind).result


def shift(name: str, value: Any, axis: int, offset: int, *, rotate: bool) -> Any:
    """Returns the `value` of the device `offset` before this one along `axis`, cyclically if `rotate`."""
    return _shard.ShiftOp(value.type, name, value, axis, offset, grid_axes=_axes([axis]), rotate=rotate).result


def send(name: str, value: Any, axes: Sequence[int], destination: Sequence[Any]) -> Any:
    """Sends `value` to the device at `destination`, `index` values, along `axes`."""
    at = [DYNAMIC] * len(axes)
    return _shard.SendOp(value.type, name, value, at, list(destination), grid_axes=_axes(axes)).result


def recv(name: str, value: Any, axes: Sequence[int], source: Sequence[Any]) -> Any:
    """Receives a tensor of the type of `value` from the device at `source`, `index` values, along `axes`."""
    at = ir.DenseI64ArrayAttr.get([DYNAMIC] * len(axes))
    return _shard.RecvOp(value.type, name, value, list(source), grid_axes=_axes(axes), source=at).result


def broadcast(name: str, value: Any, axes: Sequence[int], root: Sequence[int]) -> Any:
    """Returns the `value` of the device at `root` along `axes`."""
    return _shard.BroadcastOp(value.type, name, value, list(root), [], grid_axes=_axes(axes)).result


def update_halo(name: str, value: Any, axes_per_dim: Sequence[Sequence[int]], halos: Sequence[tuple[int, int]]) -> Any:
    """Returns `value` with the halos along each sharded dimension updated from the neighbours along its axes.

    halos: the sizes of the halos before and after the elements of each such dimension.
    """
    split = ir.Attribute.parse(f"#shard<axisarray{[list(axes) for axes in axes_per_dim]}>")
    sizes = [size for halo in halos for size in halo]
    return _shard.UpdateHaloOp(value.type, value, name, split, [], static_halo_sizes=sizes).result


def process_index(name: str, axes: Sequence[int]) -> list[Any]:
    """Returns this device's position along each of `axes`, as `index` values."""
    types = [ir.IndexType.get()] * len(axes)
    return list(_shard.ProcessMultiIndexOp(types, name, axes=_axes(axes)).operation.results)


def resized(type_: Any, shape: Sequence[int]) -> Any:
    """Returns the ranked tensor type with another shape, and the same element type and encoding."""
    return ir.RankedTensorType.get(list(shape), type_.element_type, type_.encoding)


def _divided(type_: Any, dim: int, blocks: int) -> list[int]:
    shape = list(type_.shape)
    if shape[dim] % blocks:
        raise ValueError(f"dimension {dim} of {type_} is not divisible into {blocks} shards")
    shape[dim] //= blocks
    return shape


def reduction_of(op: Any) -> str:
    """Returns the name of the reduction of a collective, by default `sum`."""
    attribute = str(op.attributes["reduction"]) if "reduction" in op.attributes else "#shard<partial sum>"
    return attribute.removeprefix("#shard<partial ").removesuffix(">")


def _partial(reduction: ReductionOp | str) -> Any:
    kind = reduction.value if isinstance(reduction, ReductionOp) else reduction
    return ir.Attribute.parse(f"#shard<partial {kind}>")


def _with_size(type_: Any, dim: int, size: int) -> Any:
    shape = list(type_.shape)
    shape[dim] = size
    return resized(type_, shape)


def _axes(axes: Sequence[int]) -> Any:
    return ir.DenseI16ArrayAttr.get(list(axes))


_arith = host.dialect("arith")
_linalg = host.dialect("linalg")


def empty(shape: Sequence[int], element_type: Any) -> Any:
    """Builds a tensor with undefined elements."""
    type_ = ir.RankedTensorType.get(list(shape), element_type)
    return ir.Operation.create("tensor.empty", [type_], []).results[0]


def reshape(value: Any, shape: Sequence[int]) -> Any:
    """Reshapes a tensor: the elements keep their order, and none is moved."""
    if list(value.type.shape) == list(shape):
        return value
    flat = value
    if value.type.rank != 1:
        flat_type = resized(value.type, [prod(value.type.shape)])
        flat = _collapsed(value, flat_type) if value.type.rank else _expanded(value, flat_type)
    if len(shape) == 1:
        return flat
    type_ = resized(value.type, shape)
    return _expanded(flat, type_) if shape else _collapsed(flat, type_)


def _collapsed(value: Any, type_: Any) -> Any:
    """Collapses a tensor to a vector, or a vector of one element to a scalar."""
    attributes = {_REASSOCIATION: _reassociation(value.type.rank if type_.rank else 0)}
    return ir.Operation.create("tensor.collapse_shape", [type_], [value], attributes).results[0]


def _expanded(value: Any, type_: Any) -> Any:
    """Expands a vector or a scalar to the dimensions of a static type."""
    attributes = {
        _REASSOCIATION: _reassociation(type_.rank if value.type.rank else 0),
        "static_output_shape": ir.DenseI64ArrayAttr.get(list(type_.shape)),
    }
    return ir.Operation.create("tensor.expand_shape", [type_], [value], attributes).results[0]


_REASSOCIATION = "reassociation"


def _reassociation(rank: int) -> Any:
    """Returns the reassociation of all dimensions to one group, without groups for rank 0."""
    integer = ir.IntegerType.get_signless(64)
    group = [ir.IntegerAttr.get(integer, dim) for dim in range(rank)]
    return ir.ArrayAttr.get([ir.ArrayAttr.get(group)] if rank else [])


def extract_slice(value: Any, start: Sequence[Any], shape: Sequence[int]) -> Any:
    """Extracts the slice of `shape` that begins at `start`; each start is a number or an `index` value."""
    type_ = resized(value.type, shape)
    if 0 in shape:
        # No start is valid in a dimension of size 0.
        return empty(shape, type_.element_type)
    static, dynamic = _split(start)
    attributes = _slice_attributes([1, len(dynamic), 0, 0], static, shape)
    return ir.Operation.create("tensor.extract_slice", [type_], [value, *dynamic], attributes).results[0]


def insert_slice(value: Any, into: Any, start: Sequence[Any]) -> Any:
    """Inserts `value` into the tensor `into` at `start`; each start is a number or an `index` value."""
    if 0 in value.type.shape:
        return into
    static, dynamic = _split(start)
    attributes = _slice_attributes([1, 1, len(dynamic), 0, 0], static, value.type.shape)
    return ir.Operation.create("tensor.insert_slice", [into.type], [value, into, *dynamic], attributes).results[0]


def _slice_attributes(segments: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]) -> dict[str, Any]:
    """Returns the attributes of a slice with static sizes. The host's wrappers of slices take five times as long."""
    numbers = ir.DenseI64ArrayAttr.get
    return {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments)),
        "static_offsets": numbers(list(offsets)),
        "static_sizes": numbers(list(sizes)),
        "static_strides": numbers([1] * len(sizes)),
    }


def _split(start: Sequence[Any]) -> tuple[list[int], list[Any]]:
    static = [one if isinstance(one, int) else DYNAMIC for one in start]
    return static, [one for one in start if not isinstance(one, int)]


def zeros(type_: Any) -> Any:
    """Builds a constant of zeros, of any numeric element type."""
    element = type_.element_type
    if (isinstance(element, ir.IntegerType) and element.is_signless) or isinstance(element, ir.IndexType):
        return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, 0))).result
    if isinstance(element, ir.FloatType):
        return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 0.0))).result
    return stablehlo.splat(type_, 0)


def cut_or_padded(value: Any, shape: Sequence[int]) -> Any:
    """Slices a tensor, or pads it with zeros, at the end of each dimension to the size in `shape`."""
    for dim, size in enumerate(shape):
        before = list(value.type.shape)
        if before[dim] > size:
            value = extract_slice(value, [0] * len(before), [*before[:dim], size, *before[dim + 1 :]])
        elif before[dim] < size:
            value = insert_slice(value, zeros(_with_size(value.type, dim, size)), [0] * len(before))
    return value


def transpose(value: Any, permutation: Sequence[int]) -> Any:
    """Transposes a tensor: dimension i of the result is dimension `permutation[i]` of `value`."""
    if list(permutation) == list(range(len(permutation))):
        return value
    shape = [value.type.shape[dim] for dim in permutation]
    into = empty(shape, value.type.element_type)
    return _linalg.transpose(value, outs=[into], permutation=list(permutation)).operation.results[0]


def split_to_front(value: Any, dims: Sequence[int], counts: Sequence[int]) -> Any:
    """Splits each of the dimensions `dims` into equal parts, numbered by new dimensions at the front."""
    shape: list[int] = []
    numbering: dict[int, int] = {}
    for dim, size in enumerate(value.type.shape):
        if dim in dims:
            count = counts[dims.index(dim)]
            numbering[dim] = len(shape)
            shape.append(count)
            size //= count
        shape.append(size)
    front = [numbering[dim] for dim in dims]
    return transpose(reshape(value, shape), [*front, *(dim for dim in range(len(shape)) if dim not in front)])


def join_from_front(value: Any, dims: Sequence[int]) -> Any:
    """Joins the parts of the dimensions `dims`, numbered by the first dimensions: the inverse of `split_to_front`.

    dims: dimensions of the result, which are those of the operand without the first ones.
    """
    permutation: list[int] = []
    shape: list[int] = []
    for dim, size in enumerate(list(value.type.shape)[len(dims) :]):
        if dim in dims:
            permutation.append(dims.index(dim))
            size *= value.type.shape[dims.index(dim)]
        permutation.append(len(dims) + dim)
        shape.append(size)
    return reshape(transpose(value, permutation), shape)
