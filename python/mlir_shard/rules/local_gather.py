# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The partition rule of StableHLO's gather."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.rules.local_indices import BlockIndices, has_first_blocks
from mlir_shard.rules.local_results import continue_with
from mlir_shard.rules.partition import Blocks, PartitionError, partition_rule, set_result_types

_bindings = host.module("_mlir_libs._stablehlo")


@partition_rule("stablehlo.gather", allows_uneven=True)
def gather(op: Any, blocks: Blocks) -> None:
    """The same gather from a block.

    Along a sharded dimension of which indices select one element, each device takes what is in its block and zeros
    for the rest, so that the sum over devices is what was asked for.
    """
    blocks.check_known()
    set_result_types(op, blocks)
    if blocks.operands[0].is_whole:
        return
    tensor = blocks.operands[0]
    numbers = _bindings.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = list(op.attributes["slice_sizes"])
    batching = list(numbers.operand_batching_dims)
    selected = []
    for dim, count in enumerate(tensor.counts):
        if count == 1 or dim in batching:
            continue
        if sizes[dim] == 1:
            selected.append(dim)
        elif sizes[dim] == blocks.operand_size(0, dim):
            sizes[dim] = tensor.block_shape[dim]
        else:
            raise PartitionError(f"its slices reach over blocks of dimension {dim}")
    op.attributes["slice_sizes"] = stablehlo.sizes(sizes)
    if selected:
        _select_own(op, blocks, selected, numbers)


def _select_own(op: Any, blocks: Blocks, selected: list[int], numbers: Any) -> None:
    tensor, index_map = blocks.operands[0], list(numbers.start_index_map)
    indexed = [dim for dim in selected if dim in index_map]
    others = [dim for dim in selected if dim not in index_map]
    mask = None
    with ir.InsertionPoint(op), op.location:
        if indexed:
            indices = BlockIndices(op.operands[1], numbers.index_vector_dim, index_map, indexed, tensor, blocks)
            op.operands[1], mask = indices.local(indices.inside(), with_mask=True)
        if others:
            is_first = has_first_blocks(tensor, others, blocks)
            if mask is not None:
                is_first = stablehlo.broadcast(is_first, mask.type.shape)
                is_first = stablehlo.build("and", mask.type, mask, is_first)
            mask = is_first
    result = op.results[0]

    def own() -> Any:
        return stablehlo.select(_over_result(mask, result.type, numbers), result, stablehlo.splat(result.type, 0))

    continue_with(op, 0, own)


def _over_result(mask: Any, type_: Any, numbers: Any) -> Any:
    """The mask of index components as one of result elements: true where all components are."""
    if not mask.type.rank:
        return stablehlo.broadcast(mask, type_.shape)
    vector_dim = numbers.index_vector_dim
    if vector_dim < mask.type.rank:
        shape = [size for dim, size in enumerate(mask.type.shape) if dim != vector_dim]
        yes = stablehlo.splat(stablehlo.tensor(stablehlo.boolean()), 1)
        reduced = stablehlo.with_shape(mask.type, shape)
        mask = stablehlo.combining("reduce", reduced, [mask, yes], "and", dimensions=stablehlo.sizes([vector_dim]))
    batch = [dim for dim in range(type_.rank) if dim not in list(numbers.offset_dims)]
    return stablehlo.broadcast(mask, type_.shape, batch)
