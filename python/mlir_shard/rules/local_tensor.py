# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of tensor: ops with their shapes in their types, and those that say sizes in attributes."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.moving_windows import dim_of, windows_of
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types
from mlir_shard.sharding import OpShardingRule

partition_rule("tensor.gather", "tensor.scatter")(set_result_types)
partition_rule("tensor.collapse_shape", "tensor.concat", allows_uneven=True)(set_result_types)


@partition_rule("tensor.expand_shape", allows_uneven=True)
def expand_shape(op: Any, blocks: Blocks) -> None:
    """The sizes it expands to are those of the block."""
    set_result_types(op, blocks)
    op.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(op.results[0].type.shape))


@partition_rule("tensor.extract_slice", allows_uneven=True)
def extract_slice(op: Any, blocks: Blocks) -> None:
    """Of a dimension that is in blocks it takes all there is, or where it moves elements all that its block needs."""
    set_result_types(op, blocks)
    _take_blocks(op, op.operands[0])
    if blocks.rule is None:
        return
    sizes, offsets = (list(op.attributes[f"static_{name}"]) for name in ("sizes", "offsets"))
    for window in windows_of(op, blocks.rule):
        result_dim = dim_of(window.factor, blocks.rule.result_mappings[0])
        if blocks.factor_axes[window.factor] and result_dim is not None:
            offsets[window.dim], sizes[window.dim] = 0, op.results[0].type.shape[result_dim]
    op.attributes["static_sizes"], op.attributes["static_offsets"] = map(ir.DenseI64ArrayAttr.get, (sizes, offsets))


def _written_in_part(op: Any, rule: OpShardingRule) -> list[int]:
    """The factors of dimensions of which a part is written, and those of the slice there."""
    sizes, shape = list(op.attributes["static_sizes"]), shape_of(op.operands[1].type)
    whole = rule.operand_mappings[1]
    kept = {
        factor
        for dim, of_dim in enumerate(whole.dim_mappings)
        for factor in of_dim.factor_indices
        if sizes[dim] == shape[dim]
    }
    return [factor for factor in range(rule.num_factors) if factor not in kept]


@partition_rule("tensor.insert_slice", unshardable=_written_in_part, allows_uneven=True)
def insert_slice(op: Any, blocks: Blocks) -> None:
    """Of a dimension that is in blocks all is written."""
    set_result_types(op, blocks)
    _take_blocks(op, op.operands[1])


def _take_blocks(op: Any, tensor: Any) -> None:
    sizes = [min(size, local) for size, local in zip(op.attributes["static_sizes"], tensor.type.shape, strict=True)]
    op.attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(sizes)
