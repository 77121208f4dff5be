# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How ops shard and how they become local: one file per op dialect, registered on import of this package."""

from __future__ import annotations

from mlir_shard.rules import (
    arith,
    bufferization,
    chlo,
    complex,
    linalg,
    linalg_layout,
    local_concatenate,
    local_gather,
    local_linalg,
    local_ops,
    local_pads,
    local_scatter,
    local_selection,
    local_shifts,
    local_slices,
    local_stablehlo,
    local_tensor,
    local_tosa,
    local_tosa_windows,
    local_windows,
    math,
    programs,
    sdy,
    stablehlo,
    tensor,
    tensor_slices,
    tosa,
)
from mlir_shard.rules.builder import RuleBuilder
from mlir_shard.rules.partition import BlockedTensor, Blocks, PartitionError, partition_rule
from mlir_shard.rules.reduction import reduction_of
from mlir_shard.rules.registry import RuleCache, RuleError, RuleOptions, rule_for, sharding_rule
from mlir_shard.rules.text import RuleText, RuleTextError, parse_rule, rule_from_text
from mlir_shard.rules.without_rule import reason_without_rule, without_rule

__all__ = [
    "BlockedTensor",
    "Blocks",
    "PartitionError",
    "RuleBuilder",
    "RuleCache",
    "RuleError",
    "RuleOptions",
    "RuleText",
    "RuleTextError",
    "arith",
    "bufferization",
    "chlo",
    "complex",
    "linalg",
    "linalg_layout",
    "local_concatenate",
    "local_gather",
    "local_linalg",
    "local_ops",
    "local_pads",
    "local_scatter",
    "local_selection",
    "local_shifts",
    "local_slices",
    "local_stablehlo",
    "local_tensor",
    "local_tosa",
    "local_tosa_windows",
    "local_windows",
    "math",
    "parse_rule",
    "partition_rule",
    "programs",
    "reason_without_rule",
    "reduction_of",
    "rule_for",
    "rule_from_text",
    "sdy",
    "sharding_rule",
    "stablehlo",
    "tensor",
    "tensor_slices",
    "tosa",
    "without_rule",
]
