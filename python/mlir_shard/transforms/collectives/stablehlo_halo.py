# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanges of the borders of shards with neighbours, in StableHLO.

A border that no device has is padding.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.device_permutation import shift_pairs
from mlir_shard.resharding.windows import WindowHalo
from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.transforms.collectives.stablehlo import StablehloCollectives


def received(
    value: Any,
    padding: Any | None,
    axes: tuple[AxisRef, ...],
    offset: int,
    builder: StablehloCollectives,
    *,
    is_zero: bool = False,
    sharding: TensorSharding | None = None,
) -> Any:
    """Returns the value of the shard `offset` before this device's along axes, or padding if none exists.

    Args:
        padding: a scalar; None for zero.
        is_zero: whether the padding is known to be zero, as is the value of a device that receives nothing.
    """
    pairs = shift_pairs(axes, builder.mesh, offset)
    if not len(pairs):
        filling = stablehlo.scalar(0, value.type.element_type) if padding is None else padding
        return stablehlo.broadcast(filling, value.type.shape, sharding=sharding)
    sent = builder.permute(value, pairs)
    if sharding is not None:
        sdy.set_sharding(sent, sharding)
    if is_zero or padding is None:
        return sent
    index = builder.shard_number(axes)
    bound, direction = (offset, "GE") if offset > 0 else (builder.group_size(axes) - 1 + offset, "LE")
    is_there = stablehlo.compare(direction, index, stablehlo.scalar(bound))
    return stablehlo.select(is_there, sent, stablehlo.broadcast(padding, value.type.shape), sharding)


def with_borders(
    value: Any, dim: int, axes: tuple[AxisRef, ...], halo: WindowHalo, builder: StablehloCollectives
) -> Any:
    """Returns a shard with the elements of other shards in its windows along a dimension, which is sharded along axes.

    Only the borders are sent; beyond the tensor there are zeros. Built at the current insertion point.
    """
    zero = stablehlo.splat(stablehlo.tensor(value.type.element_type), 0)
    size = value.type.shape[dim]
    segments = [value]
    for hop, below, above in halo.hops():
        if below:
            sent = stablehlo.along(value, dim, size - below, size)
            segments.insert(0, received(sent, zero, axes, hop, builder, is_zero=True))
        if above:
            sent = stablehlo.along(value, dim, 0, above)
            segments.append(received(sent, zero, axes, -hop, builder, is_zero=True))
    if len(segments) > 1:
        value = stablehlo.concatenate(segments, dim, None)
    if halo.head or halo.tail:
        head, tail, none = (
            [size if one == dim else 0 for one in range(value.type.rank)] for size in (halo.head, halo.tail, 0)
        )
        value = stablehlo.pad(value, zero, head, tail, none)
    if not halo.step:
        return stablehlo.along(value, dim, halo.first, halo.first + halo.footprint)
    # An empty shard of the result may have no window; the slice is then clamped to the nearest elements.
    index = builder.shard_number(axes)
    moved = stablehlo.binary("multiply", index, stablehlo.scalar(halo.step))
    start = stablehlo.binary("add", moved, stablehlo.scalar(halo.first))
    origin = stablehlo.scalar(0)
    starts = [start if one == dim else origin for one in range(value.type.rank)]
    return stablehlo.dynamic_slice(value, starts, stablehlo.with_size(value.type, dim, halo.footprint).shape, None)
