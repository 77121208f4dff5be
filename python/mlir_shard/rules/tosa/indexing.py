# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of TOSA's ops that take or write rows at given indices."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.compound import without_ones
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("tosa.gather")
def gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Of values (n, k, c) at indices (n, w): every index by itself, in whole values along `k`."""
    batch, rows, channels = shape_of(op.operands[0].type)
    return (
        RuleBuilder.for_op(op)
        .add_factor([0, 0], [0], batch)
        .add_factor([None, 1], [1], shape_of(op.operands[1].type)[1])
        .add_factor([2, None], [2], channels)
        .add_factor([1, None], [None], rows, FactorType.NEED_REPLICATION)
        .build()
    )


@sharding_rule("tosa.scatter")
def scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Into values (n, k, c) at indices (n, w): batches and channels go through, rows have to be whole."""
    batch, rows, channels = shape_of(op.operands[0].type)
    return (
        RuleBuilder.for_op(op)
        .add_factor([0, 0, 0], [0], batch)
        .add_factor([2, None, 2], [2], channels)
        .add_factor([1, None, None], [1], rows, FactorType.NEED_REPLICATION)
        .add_factor([None, 1, 1], [None], shape_of(op.operands[1].type)[1], FactorType.NEED_REPLICATION)
        .build()
    )


@sharding_rule("tosa.row_gather", "tosa.row_gather_block_scaled")
def row_gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """As `gather`, but of several rows for each index; scales go with the blocks of data they belong to."""
    tensors = len(op.results)
    batch, rows, channels = shape_of(op.operands[0].type)
    indices = shape_of(op.operands[tensors].type)[1]
    scales = shape_of(op.operands[tensors - 1].type)[2]
    of_indices = [None] * tensors
    rule = (
        RuleBuilder.for_op(op)
        .add_factor([*[0] * tensors, 0, None], [0] * tensors, batch)
        .add_factor([*of_indices, 1, None], [1] * tensors, indices)
        .add_factor([*of_indices, None, None], [1] * tensors, shape_of(op.results[0].type)[1] // max(indices, 1))
        .add_factor([*[2] * tensors, None, None], [2] * tensors, scales)
        .add_factor(
            [2, *[None] * (tensors + 1)],
            [2, *[None] * (tensors - 1)],
            channels // max(scales, 1),
            FactorType.NEED_REPLICATION,
        )
        .add_factor([*[1] * tensors, None, None], of_indices, rows, FactorType.NEED_REPLICATION)
        .build()
    )
    return without_ones(rule)
