# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a resharding plan as collectives of upstream's shard dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.dialects import shard, stablehlo
from mlir_shard.host import dialect, ir
from mlir_shard.resharding.steps import AllGather, AllReduce, AllSlice, AllToAll, ReduceScatter
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.relocation import Relocation
from mlir_shard.transforms.spmdize.reshard_moves import Resharding

_arith, _tensor = dialect("arith"), dialect("tensor")


def emit(value: Any, resharding: Resharding | None, grid: DeviceGrid) -> Any:
    """The value resharded, built at the current insertion point and location.

    Local tensors have the size of a full block: what is beyond the tensor is cut off where there is more, and made up
    where a collective needs equal parts.
    """
    if resharding is None:
        return value
    before, shape = resharding.source, resharding.shape
    value = _relocated(value, resharding.arrival, grid)
    for move in resharding.moves:
        after = move.apply(before)
        local = grid.local_shape(shape, after)
        if isinstance(move, AllReduce):
            value = shard.all_reduce(grid.name, value, sorted(move.axes), move.reduction)
        elif isinstance(move, AllGather):
            value = resized(all_gather(value, move, grid), local)
        elif isinstance(move, AllSlice):
            value = _with_equal_parts(value, move.dim, local, move.axes, grid)
            value = shard.all_slice(grid.name, value, move.axes, move.dim, grid.blocks(move.axes))
        elif isinstance(move, AllToAll):
            value = _with_equal_parts(value, move.target_dim, local, move.axes, grid)
            dims = move.target_dim, move.source_dim
            value = resized(shard.all_to_all(grid.name, value, move.axes, *dims, grid.blocks(move.axes)), local)
        else:
            assert isinstance(move, ReduceScatter), move
            value = _with_equal_parts(value, move.dim, local, move.axes, grid)
            groups = grid.blocks(move.axes)
            value = shard.reduce_scatter(grid.name, value, move.axes, move.dim, groups, move.reduction)
        before = after
    return _relocated(value, resharding.departure, grid)


def _relocated(value: Any, relocation: Relocation | None, grid: DeviceGrid) -> Any:
    if relocation is None or 0 in value.type.shape:
        return value
    size = value.type.shape[0]
    every_axis = range(len(grid.shape))
    gathered = all_gather(value, AllGather(0, relocation.axes), grid)
    source = table_entry(every_axis, lambda process: relocation.source[process] * size, None, grid)
    index_type = ir.IndexType.get()
    zero = _arith.ConstantOp(index_type, ir.IntegerAttr.get(index_type, 0)).result
    start = _arith.IndexCastOp(index_type, _tensor.ExtractOp(source, [zero]).result).result
    shape = list(value.type.shape)
    at = [shard.DYNAMIC] + [0] * (len(shape) - 1), shape, [1] * len(shape)
    return _tensor.ExtractSliceOp(value.type, gathered, [start], [], [], *at).result


def _with_equal_parts(value: Any, dim: int, local: Sequence[int], axes: Sequence[int], grid: DeviceGrid) -> Any:
    shape = list(value.type.shape)
    shape[dim] = local[dim] * grid.blocks(axes)
    return resized(value, shape)


def resized(value: Any, shape: Sequence[int]) -> Any:
    """The local tensor cut off, or with zeros, at the end of each dimension."""
    for dim, size in enumerate(shape):
        before = list(value.type.shape)
        if before[dim] == size:
            continue
        after = [*before[:dim], size, *before[dim + 1 :]]
        type_ = shard.resized(value.type, after)
        at = [0] * len(before), [min(before[dim], size) if one == dim else old for one, old in enumerate(before)]
        strides = [1] * len(before)
        if size < before[dim]:
            value = _tensor.ExtractSliceOp(type_, value, [], [], [], *at, strides).result
        else:
            value = _tensor.InsertSliceOp(value, zeros(type_), [], [], [], *at, strides).result
    return value


def zeros(type_: Any) -> Any:
    """A constant of zeros, of any element type of numbers."""
    element = type_.element_type
    if (isinstance(element, ir.IntegerType) and element.is_signless) or isinstance(element, ir.IndexType):
        return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, 0))).result
    if isinstance(element, ir.FloatType):
        return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 0.0))).result
    return stablehlo.splat(type_, 0)


def all_gather(value: Any, step: AllGather, grid: DeviceGrid) -> Any:
    """The local tensors of the devices along grid axes, joined; padding is among them where blocks are not full."""
    # Upstream's lowering to MPI ignores the order of the axes where they are all of the grid's.
    ascending = list(step.axes) == sorted(step.axes)
    groups: Sequence[tuple[int, ...]] = [step.axes] if ascending else [(axis,) for axis in reversed(step.axes)]
    for axes in groups:
        value = shard.all_gather(grid.name, value, axes, step.dim, grid.blocks(axes))
    return value


def device_index(axes: Sequence[int], grid: DeviceGrid) -> Any:
    """This device's position among those along `axes`, major to minor, as an `index` value."""
    index_type = ir.IndexType.get()
    result = None
    for axis, position in zip(axes, shard.process_index(grid.name, axes), strict=True):
        if result is None:
            result = position
            continue
        size = _arith.ConstantOp(index_type, ir.IntegerAttr.get(index_type, grid.shape[axis])).result
        result = _arith.AddIOp(_arith.MulIOp(result, size).result, position).result
    return result


def table_entry(axes: Sequence[int], value: Callable[[int], int], type_: Any, grid: DeviceGrid) -> Any:
    """What `value` is of this device's position along `axes`, a tensor of one element of `type_`, or of i64."""
    element = ir.IntegerType.get_signless(64) if type_ is None else type_
    count = grid.blocks(axes)
    entries = [ir.IntegerAttr.get(element, value(position)) for position in range(count)]
    attribute = ir.DenseElementsAttr.get(entries, ir.RankedTensorType.get([count], element))
    table = _arith.ConstantOp(attribute.type, attribute).result
    index = device_index(axes, grid)
    one = ir.RankedTensorType.get([1], element)
    return _tensor.ExtractSliceOp(one, table, [index], [], [], [shard.DYNAMIC], [1], [1]).result
