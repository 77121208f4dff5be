# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rule of reductions along whole dimensions."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("stablehlo.reduce")
def reduce(op: Any, options: RuleOptions) -> OpShardingRule:
    """Reduced dimensions are reduction factors of the inputs; initial values are scalars and take no part."""
    reduced = set(op.attributes["dimensions"])
    inputs = len(op.results)
    builder = RuleBuilder.for_op(op)
    result_dim = 0
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        operand_dims = [dim] * inputs + [None] * inputs
        if dim in reduced:
            builder.add_factor(operand_dims, [None] * inputs, size, FactorType.REDUCTION)
        else:
            builder.add_factor(operand_dims, [result_dim] * inputs, size)
            result_dim += 1
    return builder.build()
