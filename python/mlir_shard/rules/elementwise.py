# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rule that all elementwise ops share; the files of the dialects list these ops."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import pointwise
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding import OpShardingRule

_names: set[str] = set()


def register_elementwise(*names: str) -> None:
    """Registers the rule of elementwise ops for ops, or dialects (`"math.*"`)."""
    _names.update(names)
    sharding_rule(*names, any_sizes=True)(elementwise)


def is_elementwise(name: str) -> bool:
    """Returns whether ops of this name were registered as elementwise."""
    return name in _names or f"{name.partition('.')[0]}.*" in _names


def elementwise(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns a rule with one factor for each dimension, common to all tensors; scalar operands have no factors."""
    return pointwise(op)
