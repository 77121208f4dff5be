# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rule of sorting."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("stablehlo.sort")
def sort(op: Any, options: RuleOptions) -> OpShardingRule:
    """The sorted dimension has to be whole; its sharding spreads only where another dimension can take it over."""
    shape = shape_of(op.operands[0].type)
    dimension = op.attributes["dimension"].value if "dimension" in op.attributes else -1
    sorted_dim = dimension % len(shape) if shape else None
    nowhere_else = all(dim == sorted_dim or size == 1 for dim, size in enumerate(shape))
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape,
            lambda dim: FactorType.NEED_REPLICATION if dim == sorted_dim else FactorType.PASS_THROUGH,
            blocked=lambda dim: nowhere_else and dim == sorted_dim,
        )
        .build()
    )
