# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The direct exchange in a local program with `shard` collectives: rounds of tiles that are sent and received."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.host import dialect
from mlir_shard.ir import shard
from mlir_shard.ir.shard import extract_slice, insert_slice, reshape
from mlir_shard.resharding.direct_exchange import Start, TileRound, as_vector, tile_rounds
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.transforms.collectives.shard_permutations import between_some, table_index
from mlir_shard.transforms.device_grid import DeviceGrid

_tensor = dialect("tensor")


def exchange(value: Any, source: TensorLayout, target: TensorLayout, into: Any, grid: DeviceGrid) -> Any:
    """The local tensor after the exchange.

    Args:
        value: the local tensor before it.
        source, target: layouts on the mesh whose axes are those of the grid.
        into: a local tensor of the target, of which the elements beyond the global tensor are kept.
    """
    if not source.rank:
        vector = exchange(reshape(value, [1]), as_vector(source), as_vector(target), reshape(into, [1]), grid)
        return reshape(vector, [])
    rounds = tile_rounds(source, target, prod(grid.shape))
    local = list(into.type.shape)
    # A device that gets no tile in a round writes behind its local tensor, so that no round depends on the device.
    spare = max((one.shape[0] for one in rounds if None in one.target_starts), default=0)
    if spare:
        larger = shard.empty([local[0] + spare, *local[1:]], into.type.element_type)
        into = insert_slice(into, larger, [0] * len(local))
    for one in rounds:
        into = _written(_received(value, one, grid), into, one, local[0], grid)
    return extract_slice(into, [0] * len(local), local) if spare else into


def _received(value: Any, one: TileRound, grid: DeviceGrid) -> Any:
    """The tile that this device gets in a round, anything where it gets none."""
    rank = len(one.shape)
    starts = _starts([start or (0,) * rank for start in one.source_starts], grid)
    tile = extract_slice(value, starts, one.shape)
    if one.is_copy:
        return tile
    return between_some(tile, one.senders, one.receivers, grid)


def _written(tile: Any, into: Any, one: TileRound, end: int, grid: DeviceGrid) -> Any:
    behind = (end, *[0] * (len(one.shape) - 1))
    starts = _starts([behind if start is None else start for start in one.target_starts], grid)
    return insert_slice(tile, into, starts)


def _starts(by_process: Sequence[Start], grid: DeviceGrid) -> list[Any]:
    """Of each dimension where a tile begins: a number if that is the same on all devices, else an `index` value."""
    found: list[Any] = []
    for of_dim in zip(*by_process, strict=True):
        found.append(of_dim[0] if len(set(of_dim)) == 1 else table_index(of_dim, grid))
    return found
