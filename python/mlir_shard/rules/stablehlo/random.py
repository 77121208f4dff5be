# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rule of random bits from the state of a generator."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("stablehlo.rng_bit_generator")
def rng_bit_generator(op: Any, options: RuleOptions) -> OpShardingRule:
    """The states, old and new, have to be whole and tell each other nothing; the bits may be sharded in any way."""
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        builder.add_factor([dim], [dim, None], size, FactorType.NEED_REPLICATION, blocked=True)
    for dim, size in enumerate(shape_of(op.results[1].type)):
        builder.add_factor([None], [None, dim], size)
    return builder.build()
