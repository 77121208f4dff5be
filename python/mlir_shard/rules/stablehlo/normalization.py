# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rule of batch normalization with given statistics."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import OpShardingRule


@sharding_rule("stablehlo.batch_norm_inference")
def batch_norm_inference(op: Any, options: RuleOptions) -> OpShardingRule:
    """Elementwise; scale, offset, mean and variance are vectors along the feature dimension."""
    feature = op.attributes["feature_index"].value
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        of_vector = 0 if dim == feature else None
        builder.add_factor([dim, *[of_vector] * (len(op.operands) - 1)], [dim], size)
    return builder.build()
