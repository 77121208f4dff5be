# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of TOSA's matrix products."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.compound import without_ones
from mlir_shard.rules.reduction import Combiner, reduces_with
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("tosa.matmul", "tosa.matmul_t")
def matmul(op: Any, options: RuleOptions) -> OpShardingRule:
    """Batches and rows of the first, columns of the second go through, what is summed over is a reduction.

    The second operand may be one for the whole batch, and holds rows instead of columns in `tosa.matmul_t`.
    """
    columns, summed = (1, 2) if op.name == "tosa.matmul_t" else (2, 1)
    (batch, rows, depth), right = (shape_of(operand.type) for operand in list(op.operands)[:2])
    zero_points = [None] * (len(op.operands) - 2)
    return (
        RuleBuilder.for_op(op)
        .add_factor([0, 0 if right[0] == batch else None, *zero_points], [0], batch)
        .add_factor([1, None, *zero_points], [1], rows)
        .add_factor([None, columns, *zero_points], [2], right[columns])
        .add_factor([2, summed, *zero_points], [None], depth, FactorType.REDUCTION)
        .build()
    )


@sharding_rule("tosa.matmul_t_block_scaled")
def matmul_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """As `tosa.matmul_t`; what is summed over is made of blocks, each with a scale, and each of them whole."""
    left, scales, right, _ = (shape_of(operand.type) for operand in op.operands)
    of_right = 0 if right[0] == left[0] else None
    block = left[2] // max(scales[2], 1)
    rule = (
        RuleBuilder.for_op(op)
        .add_factor([0, 0, of_right, of_right], [0], left[0])
        .add_factor([1, 1, None, None], [1], left[1])
        .add_factor([None, None, 1, 1], [2], right[1])
        .add_factor([2, 2, 2, 2], [None], scales[2], FactorType.REDUCTION)
        .add_factor([2, None, 2, None], [None], block, FactorType.NEED_REPLICATION)
        .build()
    )
    return without_ones(rule)


reduces_with(Combiner.SUM, "tosa.matmul", "tosa.matmul_t", "tosa.matmul_t_block_scaled")
