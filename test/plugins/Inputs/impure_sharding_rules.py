# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sharding rule that depends on the position of an op, without a `context_key` for it."""

from mlir_shard import interfaces
from mlir_shard.host import ir


@interfaces.sharding_rule("my.placed")
def _placed(op: ir.Operation, options: interfaces.RuleOptions) -> interfaces.OpShardingRule | None:
    is_first = op.operation.block.operations[0].operation == op.operation
    return interfaces.OpShardingRule.pointwise(op.results[0].type.shape, 1) if is_first else None
