# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The direct exchange in StableHLO: a collective permute for each round of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.ir import stablehlo
from mlir_shard.resharding.direct_exchange import Start, TileRound, as_vector, tile_rounds
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.transforms.collectives.stablehlo import StablehloCollectives


def exchange(
    value: Any, source: TensorLayout, target: TensorLayout, local_shape: Sequence[int], builder: StablehloCollectives
) -> Any:
    """Returns the local tensor after a direct exchange, with zeros beyond the global tensor.

    Args:
        value: the local tensor before it.
        source, target: layouts of the global tensor, on meshes of the same devices.
        local_shape: of the local tensor after it.
        builder: the collectives on one of the meshes.
    """
    if not source.rank:
        vector = exchange(stablehlo.reshape(value, [1]), as_vector(source), as_vector(target), [1], builder)
        return stablehlo.reshape(vector, [])
    rounds = tile_rounds(source, target)
    # A device that gets no tile in a round writes behind its local tensor, so that no round depends on the device.
    spare = max((one.shape[0] for one in rounds if None in one.target_starts), default=0)
    into = stablehlo.splat(stablehlo.with_shape(value.type, [local_shape[0] + spare, *local_shape[1:]]), 0)
    behind = (local_shape[0], *[0] * (len(local_shape) - 1))
    front = (0,) * len(local_shape)
    for one in rounds:
        tile = stablehlo.dynamic_slice(value, _starts(one.source_starts, front, builder), one.shape)
        if not one.is_copy:
            tile = builder.permute(tile, _pairs(one))
        starts = _starts(one.target_starts, behind, builder)
        into = stablehlo.build("dynamic_update_slice", into.type, into, tile, *starts)
    return stablehlo.first(into, local_shape)


def _pairs(one: TileRound) -> list[tuple[int, int]]:
    return [(sender, receiver) for receiver, sender in enumerate(one.senders) if sender is not None]


def _starts(by_device: Sequence[Start | None], otherwise: Start, builder: StablehloCollectives) -> list[Any]:
    """Where this device's tile begins in each dimension, scalars of i64."""
    return [
        stablehlo.scalar(of_dim[0]) if len(set(of_dim)) == 1 else builder.entry_of_device(of_dim)
        for of_dim in zip(*(otherwise if start is None else start for start in by_device), strict=True)
    ]
