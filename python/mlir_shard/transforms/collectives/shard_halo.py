# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Halo exchanges of shards by `shard.update_halo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import dialect
from mlir_shard.ir import shard
from mlir_shard.ir.index_arithmetic import constant, multiply
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.resharding.windows import WindowHalo
from mlir_shard.transforms.collectives.shard_permutations import device_index
from mlir_shard.transforms.device_grid import DeviceGrid

_arith = dialect("arith")


def with_halo(value: Any, dim: int, axes: GridAxes, halo: WindowHalo, grid: DeviceGrid) -> Any:
    """Builds the shard with the elements of other shards in its windows along a dimension.

    Neighbours forward the elements from beyond them, hop by hop.
    """
    shape = list(value.type.shape)

    def exchanged(value: Any, below: int, above: int) -> Any:
        return _exchanged(value, dim, axes, below, above, grid)

    own = halo.head + halo.below
    pieces = [(own, value)]
    before = behind = value
    for hop, below, above in halo.hops():
        if hop == 1:
            bordered = exchanged(value, below, above)
            pieces = [(own - below, bordered)]
            if halo.below > below:
                before = _along(bordered, dim, 0, below)
            if halo.above > above:
                behind = _along(bordered, dim, below + halo.block, above)
            continue
        if below:
            before = _along(exchanged(before, below, 0), dim, 0, below)
            pieces.append((own - (hop - 1) * halo.block - below, before))
        if above:
            behind = _along(exchanged(behind, 0, above), dim, halo.block, above)
            pieces.append((own + hop * halo.block, behind))
    value = _assembled(pieces, dim, own + halo.block + halo.above + halo.tail)
    piece = _with_size(shape, dim, halo.footprint)
    if piece == list(value.type.shape):
        return value
    if not halo.step:
        return _along(value, dim, halo.first, halo.footprint)
    start = _start(axes, halo, grid)
    return shard.extract_slice(value, [start if one == dim else 0 for one in range(len(shape))], piece)


def _exchanged(value: Any, dim: int, along: GridAxes, below: int, above: int, grid: DeviceGrid) -> Any:
    """Returns the value with `below` and `above` elements of the neighbours around it; zeros without a neighbour."""
    shape = list(value.type.shape)
    value = _assembled([(below, value)], dim, below + shape[dim] + above)
    axes = [along if one == dim else () for one in range(dim + 1)]
    return shard.update_halo(grid.name, value, axes, [(below, above)])


def _assembled(pieces: Sequence[tuple[int, Any]], dim: int, size: int) -> Any:
    """Returns a value with the pieces at their places along a dimension of `size` elements, and zeros elsewhere."""
    _, first = pieces[0]
    shape = list(first.type.shape)
    if shape[dim] == size:
        return first
    result = shard.zeros(shard.resized(first.type, _with_size(shape, dim, size)))
    for place, piece in pieces:
        result = shard.insert_slice(piece, result, [place if one == dim else 0 for one in range(len(shape))])
    return result


def _along(value: Any, dim: int, start: int, size: int) -> Any:
    """Slices `size` elements of a dimension, from `start` on."""
    shape = _with_size(list(value.type.shape), dim, size)
    if shape == list(value.type.shape):
        return value
    return shard.extract_slice(value, [start if one == dim else 0 for one in range(len(shape))], shape)


def _start(axes: GridAxes, halo: WindowHalo, grid: DeviceGrid) -> Any:
    moved = multiply(device_index(axes, grid), constant(halo.step))
    start = _arith.AddIOp(moved, constant(halo.first)).result
    if halo.starts_inside(grid.blocks(axes)):
        return start
    return _arith.MinSIOp(_arith.MaxSIOp(start, constant(0)).result, constant(halo.last_start)).result


def _with_size(shape: list[int], dim: int, size: int) -> list[int]:
    return [*shape[:dim], size, *shape[dim + 1 :]]
