# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a resharding plan as collectives of upstream's shard dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mlir_shard.dialects import shard
from mlir_shard.host import dialect, ir
from mlir_shard.resharding.steps import AllGather, AllReduce, AllSlice, Step
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid

_arith, _tensor = dialect("arith"), dialect("tensor")


def emit(value: Any, steps: Iterable[Step], grid: DeviceGrid) -> Any:
    """The value after the steps, built at the current insertion point and location."""
    for step in steps:
        if isinstance(step, AllReduce):
            value = shard.all_reduce(grid.name, value, sorted(step.axes), step.reduction)
        elif isinstance(step, AllSlice):
            value = shard.all_slice(grid.name, value, step.axes, step.dim, grid.blocks(step.axes))
        else:
            value = _all_gather(value, step, grid)
    return value


def _all_gather(value: Any, step: AllGather, grid: DeviceGrid) -> Any:
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
