# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of bufferization: of the ops between tensors alone, as memory is not sharded here."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.without_rule import without_rule
from mlir_shard.sharding import OpShardingRule

without_rule("bufferization.*", because="it works on memory, which is not sharded")


@sharding_rule("bufferization.alloc_tensor", "bufferization.materialize_in_destination")
def same_shape(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """All tensors correspond element by element. None where the destination is memory or nothing is copied."""
    if not len(op.results) or not any(isinstance(value.type, ir.RankedTensorType) for value in op.operands):
        return None
    return RuleBuilder.for_op(op).add_pointwise(shape_of(op.results[0].type)).build()
