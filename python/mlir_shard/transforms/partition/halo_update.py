# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks with what is needed of those around them, by `shard.update_halo`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import dialect
from mlir_shard.ir import shard
from mlir_shard.ir.index_arithmetic import constant, multiply
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.resharding.windows import FactorWindow, WindowHalo
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.device_permutations import device_index
from mlir_shard.transforms.partition.emission import zeros

_arith = dialect("arith")
_tensor = dialect("tensor")


@dataclass(frozen=True, slots=True)
class HaloUpdate:
    """What is done with a dimension of an operand that is in blocks along grid axes, for windows along it."""

    operand: int
    dim: int
    axes: GridAxes
    halo: WindowHalo
    window: FactorWindow


def with_halo(value: Any, update: HaloUpdate, grid: DeviceGrid) -> Any:
    """What the device's windows are of, built at the current insertion point.

    What comes from further away than the neighbours these have received before, and hand on.
    """
    halo, dim = update.halo, update.dim
    shape = list(value.type.shape)
    own = halo.head + halo.below
    pieces = [(own, value)]
    before = behind = value
    for hop, below, above in halo.hops():
        if hop == 1:
            bordered = _exchanged(value, update, below, above, grid)
            pieces = [(own - below, bordered)]
            if halo.below > below:
                before = _along(bordered, dim, 0, below)
            if halo.above > above:
                behind = _along(bordered, dim, below + halo.block, above)
            continue
        if below:
            before = _along(_exchanged(before, update, below, 0, grid), dim, 0, below)
            pieces.append((own - (hop - 1) * halo.block - below, before))
        if above:
            behind = _along(_exchanged(behind, update, 0, above, grid), dim, halo.block, above)
            pieces.append((own + hop * halo.block, behind))
    value = _assembled(pieces, dim, own + halo.block + halo.above + halo.tail)
    piece = _with_size(shape, dim, halo.footprint)
    if piece == list(value.type.shape):
        return value
    if not halo.step:
        return _along(value, dim, halo.first, halo.footprint)
    starts = [shard.DYNAMIC if one == dim else 0 for one in range(len(shape))]
    type_ = shard.resized(value.type, piece)
    start = _start(update, grid)
    return _tensor.ExtractSliceOp(type_, value, [start], [], [], starts, piece, [1] * len(shape)).result


def _exchanged(value: Any, update: HaloUpdate, below: int, above: int, grid: DeviceGrid) -> Any:
    """The value with as many elements of the neighbours' values before and behind it; zeros where there is none."""
    dim, shape = update.dim, list(value.type.shape)
    value = _assembled([(below, value)], dim, below + shape[dim] + above)
    axes = [update.axes if one == dim else () for one in range(dim + 1)]
    return shard.update_halo(grid.name, value, axes, [(below, above)])


def _assembled(pieces: Sequence[tuple[int, Any]], dim: int, size: int) -> Any:
    """The pieces, each at its place along a dimension of so many elements, and zeros."""
    _, first = pieces[0]
    shape = list(first.type.shape)
    if shape[dim] == size:
        return first
    result = zeros(shard.resized(first.type, _with_size(shape, dim, size)))
    for place, piece in pieces:
        starts = [place if one == dim else 0 for one in range(len(shape))]
        sizes = list(piece.type.shape)
        result = _tensor.InsertSliceOp(piece, result, [], [], [], starts, sizes, [1] * len(shape)).result
    return result


def _along(value: Any, dim: int, start: int, size: int) -> Any:
    """As many elements of a dimension."""
    shape = _with_size(list(value.type.shape), dim, size)
    if shape == list(value.type.shape):
        return value
    starts = [start if one == dim else 0 for one in range(len(shape))]
    type_ = shard.resized(value.type, shape)
    return _tensor.ExtractSliceOp(type_, value, [], [], [], starts, shape, [1] * len(shape)).result


def _start(update: HaloUpdate, grid: DeviceGrid) -> Any:
    halo = update.halo
    moved = multiply(device_index(update.axes, grid), constant(halo.step))
    start = _arith.AddIOp(moved, constant(halo.first)).result
    if halo.starts_inside(grid.blocks(update.axes)):
        return start
    return _arith.MinSIOp(_arith.MaxSIOp(start, constant(0)).result, constant(halo.last_start)).result


def _with_size(shape: list[int], dim: int, size: int) -> list[int]:
    return [*shape[:dim], size, *shape[dim + 1 :]]
