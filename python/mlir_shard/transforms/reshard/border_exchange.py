# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks with the borders they need of those around them as StableHLO; what no device has is padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir
from mlir_shard.resharding.shard_shift import shift_pairs
from mlir_shard.resharding.window_halo import WindowHalo
from mlir_shard.sharding import AxisRef
from mlir_shard.transforms.reshard import stablehlo_pieces as hlo
from mlir_shard.transforms.reshard.halo_exchange import Devices


@dataclass(frozen=True, slots=True)
class BorderExchange:
    """What a dimension in blocks along `axes` needs, in elements."""

    dim: int
    axes: tuple[AxisRef, ...]
    blocks: int
    halo: WindowHalo


def with_borders(value: Any, padding: Any, exchange: BorderExchange, devices: Devices, *, is_zero: bool) -> Any:
    """What the windows of a device are of, from its block and a scalar `padding`, which `is_zero` or not.

    Only the borders are sent. Built at the current insertion point, inside of what is manual along all axes in use.
    """
    halo, dim = exchange.halo, exchange.dim
    size = value.type.shape[dim]
    segments = [value]
    for hop, below, above in halo.hops():
        if below:
            sent = _along(value, dim, size - below, size)
            segments.insert(0, _from_block(sent, padding, exchange, devices, offset=hop, is_zero=is_zero))
        if above:
            sent = _along(value, dim, 0, above)
            segments.append(_from_block(sent, padding, exchange, devices, offset=-hop, is_zero=is_zero))
    if len(segments) > 1:
        value = hlo.concatenate(segments, dim, None)
    if halo.head or halo.tail:
        head, tail, none = (
            [size if one == dim else 0 for one in range(value.type.rank)] for size in (halo.head, halo.tail, 0)
        )
        value = hlo.pad(value, padding, head, tail, none)
    if not halo.step:
        return _along(value, dim, halo.first, halo.first + halo.footprint)
    # A device whose block of the result is empty may find no window; a slice is then of the nearest place there is.
    index = devices.shard_index(exchange.axes)
    moved = hlo.operation("stablehlo.multiply", index.type, index, hlo.index_constant(halo.step))
    start = hlo.operation("stablehlo.add", index.type, moved, hlo.index_constant(halo.first))
    zero = hlo.index_constant(0)
    starts = [start if one == dim else zero for one in range(value.type.rank)]
    return hlo.dynamic_piece(value, starts, hlo.with_size(value.type, dim, halo.footprint).shape, None)


def _from_block(
    value: Any, padding: Any, exchange: BorderExchange, devices: Devices, *, offset: int, is_zero: bool
) -> Any:
    """The value of the device `offset` blocks before, or padding where there is none."""
    pairs = shift_pairs(exchange.axes, devices.mesh, offset)
    if not pairs:
        return hlo.broadcast(padding, value.type)
    sent = hlo.collective_permute(value, pairs, devices.channels.take())
    if is_zero:
        return sent
    bound, direction = (offset, "GE") if offset > 0 else (exchange.blocks - 1 + offset, "LE")
    index = devices.shard_index(exchange.axes)
    flag = hlo.scalar_type(ir.IntegerType.get_signless(1))
    comparison = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
    is_there = hlo.operation(
        "stablehlo.compare", flag, index, hlo.index_constant(bound), comparison_direction=comparison
    )
    return hlo.operation("stablehlo.select", value.type, is_there, sent, hlo.broadcast(padding, value.type))


def _along(value: Any, dim: int, start: int, limit: int) -> Any:
    """The elements of a dimension from `start` up to `limit`."""
    shape = list(value.type.shape)
    if (start, limit) == (0, shape[dim]):
        return value
    starts, limits = [0] * len(shape), shape
    starts[dim], limits[dim] = start, limit
    return hlo.piece(value, starts, limits, None)
