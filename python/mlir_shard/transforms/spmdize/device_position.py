# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where on the grid the device is that runs a local program with `shard` collectives, and its entries of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir import shard
from mlir_shard.transforms.device_grid import DeviceGrid

_arith, _tensor = dialect("arith"), dialect("tensor")


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


def table_index(by_process: Sequence[int], grid: DeviceGrid) -> Any:
    """The entry of a table for this process, an `index` value."""
    axes = [axis for axis, size in enumerate(grid.shape) if size > 1]
    entry = table_entry(axes, lambda process: by_process[process], None, grid)
    index_type = ir.IndexType.get()
    zero = _arith.ConstantOp(index_type, ir.IntegerAttr.get(index_type, 0)).result
    return _arith.IndexCastOp(index_type, _tensor.ExtractOp(entry, [zero]).result).result
