# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules go, but for those that only the user knows."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.ir.editing import operations_with
from mlir_shard.passes.registry import Pass, register


@register
class DropShardingRules(Pass):
    """Removes the attribute `sdy.sharding_rule` from all operations; a custom rule stays."""

    name = "sdy-drop-sharding-rules"
    anchor = "func.func"
    summary = "Drops the sharding rules of operations, custom ones excepted"

    def run(self, op: Any) -> bool:
        found = operations_with(op, sdy.SHARDING_RULE)
        for one in found:
            if not sdy.value(one.attributes[sdy.SHARDING_RULE]).is_custom_rule:
                del one.attributes[sdy.SHARDING_RULE]
        return bool(found)
