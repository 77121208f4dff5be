# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of TOSA: ops with their shapes in their types, and those that take sizes or a bias as operands."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types
from mlir_shard.rules.tosa import elementwise

_tosa = dialect("tosa")

# An index that is no part of a tensor may be one beyond the rows.
partition_rule(
    "tosa.gather",
    "tosa.row_gather",
    "tosa.row_gather_block_scaled",
    "tosa.scatter",
    "tosa.table",
)(set_result_types)
partition_rule(
    *elementwise.NAMES,
    "tosa.argmax",
    "tosa.avg_pool2d_adaptive",
    "tosa.cast_from_block_scaled",
    "tosa.cast_to_block_scaled",
    "tosa.concat",
    "tosa.fft2d",
    "tosa.matmul",
    "tosa.matmul_t",
    "tosa.matmul_t_block_scaled",
    "tosa.max_pool2d_adaptive",
    "tosa.reduce_all",
    "tosa.reduce_any",
    "tosa.reduce_max",
    "tosa.reduce_min",
    "tosa.reduce_product",
    "tosa.reduce_sum",
    "tosa.rescale",
    "tosa.resize",
    "tosa.reverse",
    "tosa.rfft2d",
    "tosa.tile",
    "tosa.transpose",
    allows_uneven=True,
)(set_result_types)


@partition_rule("tosa.reshape", "tosa.slice", allows_uneven=True)
def with_sizes(op: Any, blocks: Blocks) -> None:
    """The sizes of the result, the last operand, are those of the block."""
    set_result_types(op, blocks)
    sizes = list(op.results[0].type.shape)
    with ir.InsertionPoint(op), op.location:
        values = ir.DenseElementsAttr.get(
            [ir.IntegerAttr.get(ir.IndexType.get(), size) for size in sizes],
            ir.RankedTensorType.get([len(sizes)], ir.IndexType.get()),
        )
        last = len(op.operands) - 1
        op.operands[last] = _tosa.ConstShapeOp(op.operands[last].type, values).result
