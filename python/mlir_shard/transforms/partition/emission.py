# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the steps of a resharding plan as collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from mlir_shard.transforms.collectives.builder import GridBuilder
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.grid_reshards import Relocation, Resharding


def emit(value: Any, resharding: Resharding | None, grid: DeviceGrid, builder: GridBuilder) -> Any:
    """Returns the resharded value, built at the current insertion point and location.

    Local tensors have the size of a full shard: excess padding is cut off, and padding is added if a collective needs
    equal parts.
    """
    if resharding is None:
        return value
    before = resharding.source
    value = _relocated(value, resharding.arrival, builder)
    for placed in resharding.moves:
        if placed.between is not None:
            local = grid.local_shape(resharding.shape, placed.after)
            value = builder.exchange_tiles(value, *placed.between, local)
        else:
            value = _moved(value, placed.move, before, placed.after, resharding.shape, grid, builder)
        before = placed.after
    return _relocated(value, resharding.departure, builder)


def _moved(
    value: Any,
    move: Move,
    before: Placement,
    after: Placement,
    shape: Sequence[int],
    grid: DeviceGrid,
    builder: GridBuilder,
) -> Any:
    local = grid.local_shape(shape, after)
    if 0 in local:
        # Nothing moves, and StableHLO cannot gather along a dimension without elements.
        return builder.resized(value, local)
    # The steps of one move are of one kind, along different dimensions.
    steps = move.steps if isinstance(move, Together) else (move,)
    first = steps[0]
    if isinstance(first, AllReduce):
        return builder.all_reduce(value, first.axes, first.reduction)
    if isinstance(first, CollectivePermute):
        return builder.permute_shards(value, before, after)
    if isinstance(first, DirectExchange):
        return builder.exchange_tiles(value, grid.layout(before, shape), grid.layout(after, shape), local)
    if isinstance(first, AllGather):
        axes = {step.dim: step.axes for step in steps if isinstance(step, AllGather)}
        return builder.resized(builder.all_gather(value, axes), local)
    if isinstance(first, AllToAll):
        moves = [step for step in steps if isinstance(step, AllToAll)]
        value = _with_equal_parts(value, {one.target_dim: one.axes for one in moves}, local, builder)
        moved = builder.all_to_all(value, [(one.source_dim, one.target_dim, one.axes) for one in moves])
        return builder.resized(moved, local)
    cut = {step.dim: step.axes for step in steps if isinstance(step, type(first))}
    value = _with_equal_parts(value, cut, local, builder)
    if isinstance(first, AllSlice):
        return builder.all_slice(value, cut)
    return builder.reduce_scatter(value, cut, first.reduction)


def _relocated(value: Any, relocation: Relocation | None, builder: GridBuilder) -> Any:
    if relocation is None or 0 in value.type.shape:
        return value
    return builder.relocate(value, relocation.source)


def _with_equal_parts(value: Any, axes: Mapping[int, Sequence[int]], local: Sequence[int], builder: GridBuilder) -> Any:
    shape = list(value.type.shape)
    for dim, along in axes.items():
        shape[dim] = local[dim] * builder.group_size(along)
    return builder.resized(value, shape)
