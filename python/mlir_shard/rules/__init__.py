# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How ops shard and how they become local: one file per op dialect, registered on import of this package."""

from __future__ import annotations

from mlir_shard.rules import arith, linalg, local_linalg, local_ops, math, sdy, stablehlo, tensor
from mlir_shard.rules.builder import RuleBuilder
from mlir_shard.rules.partition import Blocks, PartitionError, partition_rule
from mlir_shard.rules.reduction import reduction_of
from mlir_shard.rules.registry import RuleCache, RuleError, RuleOptions, rule_for, sharding_rule

__all__ = [
    "Blocks",
    "PartitionError",
    "RuleBuilder",
    "RuleCache",
    "RuleError",
    "RuleOptions",
    "arith",
    "linalg",
    "local_linalg",
    "local_ops",
    "math",
    "partition_rule",
    "reduction_of",
    "rule_for",
    "sdy",
    "sharding_rule",
    "stablehlo",
    "tensor",
]
