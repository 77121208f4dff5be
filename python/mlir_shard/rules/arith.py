# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of arith: all of its ops are elementwise on tensors, but for the constant, which has no operand."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding import OpShardingRule

register_elementwise("arith.*")


@sharding_rule("arith.constant")
def constant(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """None: nothing to propagate between, its users decide."""
    return None
