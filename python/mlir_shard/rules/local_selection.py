# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A slice of a tensor in blocks: each device takes what of it is in its block, and zeros for the rest.

The sum over devices is then the slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.rules.local_stablehlo import block_start
from mlir_shard.rules.partition import BlockedTensor, Blocks, partition_rule, set_result_types


@partition_rule("stablehlo.dynamic_slice", allows_uneven=True)
def dynamic_slice(op: Any, blocks: Blocks) -> None:
    """The same slice of a block where it takes all there is of a dimension; elsewhere the part that is in the block."""
    set_result_types(op, blocks)
    op.attributes["slice_sizes"] = stablehlo.sizes(op.results[0].type.shape)
    dims = selected_dims(blocks)
    if not dims:
        return
    sizes = {dim: blocks.operand_size(0, dim) for dim in dims}
    with ir.InsertionPoint(op), op.location:
        starts = [stablehlo.convert(start, stablehlo.i64()) for start in list(op.operands)[1:]]
        for dim, size in sizes.items():
            last = stablehlo.splat(starts[dim].type, size - op.attributes["slice_sizes"][dim])
            starts[dim] = stablehlo.build("clamp", last.type, stablehlo.splat(last.type, 0), starts[dim], last)
        shape = list(op.attributes["slice_sizes"])
        op.operands[0], starts = with_room(op.operands[0], starts, shape, dims, blocks)
    for number, start in enumerate(starts):
        op.operands[1 + number] = start


def selected_dims(blocks: Blocks) -> list[int]:
    """The dimensions along which the first operand is in blocks, and the first result is not."""
    if not blocks.operands or not blocks.results:
        return []
    counts = zip(blocks.operands[0].counts, blocks.results[0].counts, strict=True)
    return [dim for dim, (before, after) in enumerate(counts) if before > 1 and after == 1]


def with_room(
    value: Any, starts: Sequence[Any], shape: Sequence[int], dims: Sequence[int], blocks: Blocks
) -> tuple[Any, list[Any]]:
    """A block with zeros around it, and where in that a slice of `shape` begins that is inside of the whole tensor.

    `starts` are scalars of i64. Along `dims` there is room for a whole slice on either side; one that is further away
    begins at an end, where it has zeros alone. Built at the current insertion point.
    """
    tensor: BlockedTensor = blocks.operands[0]
    room = [shape[dim] if dim in dims else 0 for dim in range(len(shape))]
    zero = stablehlo.splat(stablehlo.tensor(value.type.element_type), 0)
    padded = stablehlo.pad(value, zero, room, room, [0] * len(shape))
    local = list(starts)
    for dim in dims:
        type_ = local[dim].type
        moved = stablehlo.build("subtract", type_, local[dim], block_start(tensor, dim, blocks))
        local[dim] = stablehlo.build("add", type_, moved, stablehlo.splat(type_, room[dim]))
    return padded, local
