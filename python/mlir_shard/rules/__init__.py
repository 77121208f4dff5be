# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules by which ops are sharded and become local: a file or folder for each op dialect, registered on import.

Read `registry`, `rule_cache` and `builder` for sharding rules, `partition` for partition rules, `lowering` for
lowerings of users. Then read a family such as `stablehlo/compute`, which has both kinds of rules. `windows`,
`reduction` and `linalg_loops` read ops for several families.
"""

from __future__ import annotations

from mlir_shard.rules import linalg, pads, scalar_dialects, stablehlo, tensor, tosa
from mlir_shard.rules.builder import RuleBuilder
from mlir_shard.rules.partition import BlockedTensor, Blocks, PartitionError, partition_rule
from mlir_shard.rules.registry import (
    RuleError,
    RuleOptions,
    reason_without_rule,
    rule_for,
    sharding_rule,
    without_rule,
)
from mlir_shard.rules.rule_cache import RuleCache
from mlir_shard.rules.text import RuleText, RuleTextError, parse_rule, rule_from_text

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
    "linalg",
    "pads",
    "parse_rule",
    "partition_rule",
    "reason_without_rule",
    "rule_for",
    "rule_from_text",
    "scalar_dialects",
    "sharding_rule",
    "stablehlo",
    "tensor",
    "tosa",
    "without_rule",
]
