# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks with what is needed of their neighbours', by `shard.update_halo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import shard
from mlir_shard.host import dialect, ir
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.resharding.window_halo import WindowHalo
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.emission import device_index, resized, zeros

_arith, _tensor = dialect("arith"), dialect("tensor")


@dataclass(frozen=True, slots=True)
class HaloUpdate:
    """What is done with a dimension of an operand that is in blocks along grid axes."""

    operand: int
    dim: int
    axes: GridAxes
    halo: WindowHalo


def with_halo(value: Any, update: HaloUpdate, grid: DeviceGrid) -> Any:
    """What the device's windows are of, built at the current insertion point."""
    halo, dim = update.halo, update.dim
    shape = list(value.type.shape)
    rank = len(shape)
    if halo.below or halo.above:
        bordered = _with_size(shape, dim, halo.below + halo.block + halo.above)
        type_ = shard.resized(value.type, bordered)
        start = [halo.below if one == dim else 0 for one in range(rank)]
        value = _tensor.InsertSliceOp(value, zeros(type_), [], [], [], start, shape, [1] * rank).result
        axes = [update.axes if one == dim else () for one in range(dim + 1)]
        value = shard.update_halo(grid.name, value, axes, [(halo.below, halo.above)])
    value = resized(value, _with_size(list(value.type.shape), dim, value.type.shape[dim] + halo.tail))
    piece = _with_size(shape, dim, halo.footprint)
    if piece == list(value.type.shape):
        return value
    starts, dynamic = [0] * rank, []
    if halo.step:
        starts[dim], dynamic = shard.DYNAMIC, [_start(update, grid)]
    else:
        starts[dim] = halo.first
    type_ = shard.resized(value.type, piece)
    return _tensor.ExtractSliceOp(type_, value, dynamic, [], [], starts, piece, [1] * rank).result


def _start(update: HaloUpdate, grid: DeviceGrid) -> Any:
    halo = update.halo
    moved = _arith.MulIOp(device_index(update.axes, grid), _index(halo.step)).result
    start = _arith.AddIOp(moved, _index(halo.first)).result
    if halo.starts_inside(grid.blocks(update.axes)):
        return start
    return _arith.MinSIOp(_arith.MaxSIOp(start, _index(0)).result, _index(halo.last_start)).result


def _with_size(shape: list[int], dim: int, size: int) -> list[int]:
    return [*shape[:dim], size, *shape[dim + 1 :]]


def _index(value: int) -> Any:
    type_ = ir.IndexType.get()
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result
