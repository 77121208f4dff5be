# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Once propagation is over, sharding groups have done what they were for."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, register


@register
class RemoveShardingGroups(Pass):
    """Erases every `sdy.sharding_group`."""

    name = "sdy-remove-sharding-groups"
    anchor = "builtin.module"
    summary = "Removes sharding groups after propagation"

    def run(self, op: Any) -> bool:
        members = operations_named(op, "sdy.sharding_group")
        for member in members:
            member.erase()
        return bool(members)
