# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO slices along sharded dimensions, on blocks with what they need of their neighbours'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.op_mesh import mesh_of
from mlir_shard.resharding.window_halo import window_halo
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.reshard.border_exchange import BorderExchange, with_borders
from mlir_shard.transforms.reshard.halo_exchange import ManualPart
from mlir_shard.transforms.reshard.moving_ops import Surroundings, is_static

SLICE = "stablehlo.slice"


def exchange_stretches(op: Any, around: Surroundings) -> bool:
    """Replaces a slice whose operand and result are sharded alike by one of blocks with what neighbours send.

    Says whether it did: not where a block needs more than its neighbours have, nor where no sharded dimension is cut.
    """
    operand, result = op.operands[0], op.results[0]
    sharding = sharding_of(operand)
    mesh = None if sharding is None else mesh_of(sharding, around.meshes)
    if sharding is None or mesh is None or mesh.is_maximal or not is_static(op):
        return False
    if not sharding.is_equivalent(sharding_of(result)) or sharding.unreduced_axes:
        return False
    if 0 in (*operand.type.shape, *result.type.shape) or not stablehlo.has_zero(operand.type.element_type):
        return False
    exchanges = _exchanges(op, sharding, mesh)
    if not exchanges:
        return False
    part = around.part(mesh, sharding.sharding_axes)
    with ir.InsertionPoint(op), op.location:
        value = _sliced(op, exchanges, sharding, part)
    result.replace_all_uses_with(value)
    op.erase()
    return True


def _exchanges(op: Any, sharding: TensorSharding, mesh: Mesh) -> list[BorderExchange]:
    """The exchange along each dimension that is cut; none at all where a neighbour has not all that is needed."""
    found = []
    sizes = zip(op.operands[0].type.shape, op.results[0].type.shape, strict=True)
    for dim, (of_dim, (size, new_size)) in enumerate(zip(sharding.dim_shardings, sizes, strict=True)):
        blocks = of_dim.sharded_size(mesh)
        if blocks == 1 or size == new_size:
            continue
        start, stride = op.attributes["start_indices"][dim], op.attributes["strides"][dim]
        halo = window_halo(size, new_size, blocks, stride, 1, start)
        if halo is None or max(halo.below, halo.above) > halo.block or halo.head:
            return []
        found.append(BorderExchange(dim, of_dim.axes, blocks, halo))
    return found


def _sliced(op: Any, exchanges: Sequence[BorderExchange], sharding: TensorSharding, part: ManualPart) -> Any:
    """The slice; shards that are not even are made so before, and cut after."""
    value, wanted = op.operands[0], list(op.results[0].type.shape)

    def even(shape: Sequence[int]) -> list[int]:
        counts = [part.shards(sharding, dim) for dim in range(len(shape))]
        return [-(-size // count) * count for size, count in zip(shape, counts, strict=True)]

    zero = stablehlo.scalar(0, value.type.element_type)
    before, after = even(value.type.shape), even(wanted)
    if before != list(value.type.shape):
        value = stablehlo.pad_behind(value, zero, before, sharding)

    def body(blocks: Sequence[Any]) -> Any:
        local, inside = blocks
        for one in exchanges:
            local = with_borders(local, inside, one, part.builder, is_zero=True)
        starts, limits, strides = (list(op.attributes[name]) for name in _ATTRIBUTES)
        for dim, size in enumerate(local.type.shape):
            if part.shards(sharding, dim) > 1:
                starts[dim], limits[dim] = 0, size
        return stablehlo.slice_(local, starts, limits, strides)

    scalar = TensorSharding.fully_open(0, sharding.mesh_or_ref)
    operands = [(value, sharding), (zero, scalar)]
    result = part.build(operands, stablehlo.with_shape(value.type, after), sharding, body)
    return stablehlo.first(result, wanted, sharding)


_ATTRIBUTES = ("start_indices", "limit_indices", "strides")
