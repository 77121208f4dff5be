# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of tensor: those that make a tensor (empty, splat) and cast."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding import OpShardingRule

register_elementwise("tensor.cast")


@sharding_rule("tensor.empty", "tensor.splat")
def made(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """None: no operand is a tensor, so there is nothing to propagate between; the users decide."""
    return None
