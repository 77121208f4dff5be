# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of the StableHLO ops that say shapes or positions in attributes, and of what makes elements."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.rules.local_results import continue_with, drop_shardings
from mlir_shard.rules.partition import BlockedTensor, Blocks, PartitionError, partition_rule, set_result_types


def block_start(tensor: BlockedTensor, dim: int, blocks: Blocks) -> Any:
    """Where this device's block of a dimension begins, a scalar of i64 in front of the op."""
    size = tensor.block_shape[dim]
    return stablehlo.reshape(blocks.entry(tensor.axes[dim], lambda number: number * size, None), ())


@partition_rule("stablehlo.iota", allows_uneven=True)
def iota(op: Any, blocks: Blocks) -> None:
    """Counts from where the block begins."""
    blocks.check_known()
    set_result_types(op, blocks)
    drop_shardings(op)
    result, dim = op.results[0], op.attributes["iota_dimension"].value
    if blocks.results[0].counts[dim] == 1:
        return

    def shifted() -> Any:
        start = stablehlo.convert(block_start(blocks.results[0], dim, blocks), result.type.element_type)
        return stablehlo.build("add", result.type, result, stablehlo.broadcast(start, result.type.shape))

    continue_with(op, 0, shifted)


@partition_rule("stablehlo.broadcast", makes_elements=True, allows_uneven=True)
def broadcast(op: Any, blocks: Blocks) -> None:
    """The leading sizes are those of the block."""
    set_result_types(op, blocks)
    count = len(op.attributes["broadcast_sizes"])
    op.attributes["broadcast_sizes"] = stablehlo.sizes(list(op.results[0].type.shape)[:count])


@partition_rule("stablehlo.rng_bit_generator", makes_elements=True, allows_uneven=True)
def rng_bit_generator(op: Any, blocks: Blocks) -> bool:
    """Every device draws all bits, from the state that all have, and takes its own: what is drawn stays the same."""
    return False


@partition_rule("stablehlo.dynamic_update_slice", checks_blocks=True)
def dynamic_update_slice(op: Any, blocks: Blocks) -> None:
    """Each device writes what of the update falls in its block.

    Along a sharded dimension that is written in part, the block gets room for a whole update on either side, in which
    what is not its own is written, and which is cut off again.
    """
    blocks.check_known()
    set_result_types(op, blocks)
    operand, update = blocks.operands[:2]
    if any(not start.is_whole for start in blocks.operands[2:]):
        raise PartitionError("where it writes is sharded")
    parts = []
    for dim, size in enumerate(operand.type.shape):
        if not operand.has_same_blocks(dim, blocks.results[0], dim):
            raise PartitionError(f"dimension {dim} is sharded differently in its operand and its result")
        if update.type.shape[dim] == size:
            if not operand.has_same_blocks(dim, update, dim):
                raise PartitionError(f"dimension {dim} is sharded differently in its operand and its update")
        elif update.counts[dim] > 1:
            raise PartitionError(f"dimension {dim} of its update is sharded, and is a part of that of its operand")
        elif operand.counts[dim] > 1:
            parts.append(dim)
    if parts:
        _write_parts(op, blocks, parts)


def _write_parts(op: Any, blocks: Blocks, dims: list[int]) -> None:
    operand, update = blocks.operands[:2]
    shape = operand.block_shape
    room = [update.type.shape[dim] if dim in dims else 0 for dim in range(len(shape))]
    with ir.InsertionPoint(op), op.location:
        zero = stablehlo.splat(stablehlo.tensor(operand.type.element_type), 0)
        op.operands[0] = stablehlo.pad(op.operands[0], zero, room, room, [0] * len(shape))
        for dim in dims:
            start = stablehlo.convert(op.operands[2 + dim], stablehlo.i64())
            last = stablehlo.splat(start.type, operand.type.shape[dim] - room[dim])
            inside = stablehlo.build("clamp", start.type, stablehlo.splat(start.type, 0), start, last)
            begin = block_start(operand, dim, blocks)
            local = stablehlo.build("subtract", start.type, inside, begin)
            op.operands[2 + dim] = stablehlo.build("add", start.type, local, stablehlo.splat(start.type, room[dim]))
        _same_start_types(op)
    result = op.results[0]
    result.set_type(op.operands[0].type)
    limits = [low + size for low, size in zip(room, shape, strict=True)]
    continue_with(op, 0, lambda: stablehlo.slice_(result, room, limits))


def _same_start_types(op: Any) -> None:
    """All starts have one type."""
    for number in range(2, len(op.operands)):
        if op.operands[number].type.element_type != stablehlo.i64():
            op.operands[number] = stablehlo.convert(op.operands[number], stablehlo.i64())
