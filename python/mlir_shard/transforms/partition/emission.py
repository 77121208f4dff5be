# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a resharding plan as collectives of upstream's shard dialect."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.ir.shard import join_from_front, reshape, split_to_front
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    Move,
    Placement,
    Together,
)
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition import device_permutations
from mlir_shard.transforms.partition.device_permutations import Relocation
from mlir_shard.transforms.partition.grid_reshards import Resharding
from mlir_shard.transforms.partition.tile_exchange import exchange

_arith = dialect("arith")
_tensor = dialect("tensor")


def emit(value: Any, resharding: Resharding | None, grid: DeviceGrid) -> Any:
    """The value resharded, built at the current insertion point and location.

    Local tensors have the size of a full shard: what is beyond the tensor is cut off where there is more, and padded
    where a collective needs equal parts.
    """
    if resharding is None:
        return value
    before = resharding.source
    value = _relocated(value, resharding.arrival, grid)
    for placed in resharding.moves:
        value = _moved(value, placed.move, before, placed.after, resharding.shape, grid)
        before = placed.after
    return _relocated(value, resharding.departure, grid)


def _moved(value: Any, move: Move, before: Placement, after: Placement, shape: Sequence[int], grid: DeviceGrid) -> Any:
    local = grid.local_shape(shape, after)
    if isinstance(move, Together):
        moves = [one for one in move.steps if isinstance(one, AllToAll)]
        if moves:
            return _all_to_alls(value, moves, local, grid)
        gathers = [one for one in move.steps if isinstance(one, AllGather)]
        if gathers:
            # Padding is cut off once, as where all dimensions are gathered at once.
            for gather in gathers:
                value = all_gather(value, gather, grid)
            return resized(value, local)
        for one in move.steps:
            between = one.apply(before)
            value = _moved(value, one, before, between, shape, grid)
            before = between
        return value
    if isinstance(move, AllReduce):
        return shard.all_reduce(grid.name, value, sorted(move.axes), move.reduction)
    if isinstance(move, CollectivePermute):
        return device_permutations.along_axes(value, before, after, grid)
    if isinstance(move, AllGather):
        return resized(all_gather(value, move, grid), local)
    if isinstance(move, AllToAll):
        return _all_to_alls(value, [move], local, grid)
    if isinstance(move, DirectExchange):
        into = zeros(shard.resized(value.type, local))
        return exchange(value, grid.layout(before, shape), grid.layout(after, shape), into, grid)
    value = _with_equal_parts(value, move.dim, local, move.axes, grid)
    groups = grid.blocks(move.axes)
    if isinstance(move, AllSlice):
        return shard.all_slice(grid.name, value, move.axes, move.dim, groups)
    return shard.reduce_scatter(grid.name, value, move.axes, move.dim, groups, move.reduction)


def _all_to_alls(value: Any, moves: Sequence[AllToAll], local: Sequence[int], grid: DeviceGrid) -> Any:
    """All-to-alls between different dimensions as one, along the axes of all."""
    counts = [grid.blocks(move.axes) for move in moves]
    for move in moves:
        value = _with_equal_parts(value, move.target_dim, local, move.axes, grid)
    if len(moves) == 1:
        (move,), (count,) = moves, counts
        dims = move.target_dim, move.source_dim
        return resized(shard.all_to_all(grid.name, value, move.axes, *dims, count), local)
    axes = [axis for move in moves for axis in move.axes]
    # One dimension in front counts the parts for each device of the group, then those of each device.
    parts = split_to_front(value, [move.target_dim for move in moves], counts)
    shape = list(parts.type.shape)
    parts = reshape(parts, [prod(counts), *shape[len(counts) :]])
    parts = shard.all_to_all(grid.name, parts, axes, 0, 0, prod(counts))
    parts = reshape(parts, shape)
    return resized(join_from_front(parts, [move.source_dim for move in moves]), local)


def _relocated(value: Any, relocation: Relocation | None, grid: DeviceGrid) -> Any:
    if relocation is None or 0 in value.type.shape:
        return value
    return device_permutations.by_table(value, relocation, grid)


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
