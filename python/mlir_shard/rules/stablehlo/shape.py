# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of ops that lay elements out anew, all of them: broadcast, transpose, reverse, bit casts."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("stablehlo.broadcast_in_dim")
def broadcast_in_dim(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension; the operand has those that it is not stretched along."""
    shape = shape_of(op.operands[0].type)
    operand_dim_of = {result_dim: dim for dim, result_dim in enumerate(op.attributes["broadcast_dimensions"])}
    builder = RuleBuilder.for_op(op)
    for result_dim, size in enumerate(shape_of(op.results[0].type)):
        operand_dim = operand_dim_of.get(result_dim)
        if operand_dim is not None and shape[operand_dim] != size:
            builder.add_factor([operand_dim], [None], 1)
            operand_dim = None
        builder.add_factor([operand_dim], [result_dim], size)
    return builder.build()


@sharding_rule("stablehlo.transpose")
def transpose(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension, in their order."""
    shape = shape_of(op.operands[0].type)
    builder = RuleBuilder.for_op(op)
    for result_dim, operand_dim in enumerate(op.attributes["permutation"]):
        builder.add_factor([operand_dim], [result_dim], shape[operand_dim])
    return builder.build()


@sharding_rule("stablehlo.reverse")
def reverse(op: Any, options: RuleOptions) -> OpShardingRule:
    """Reversed dimensions exchange their blocks."""
    reversed_dims = set(op.attributes["dimensions"])
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape_of(op.results[0].type),
            lambda dim: FactorType.PERMUTATION if dim in reversed_dims else FactorType.PASS_THROUGH,
        )
        .build()
    )


@sharding_rule("stablehlo.bitcast_convert")
def bitcast_convert(op: Any, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but the one that splits an element into parts, which only one side has."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op).add_pointwise(min(before, after, key=len))
    if len(before) < len(after):
        builder.add_factor([None], [len(before)], after[-1], FactorType.NEED_REPLICATION)
    elif len(before) > len(after):
        builder.add_factor([len(after)], [None], before[-1], FactorType.NEED_REPLICATION)
    return builder.build()
