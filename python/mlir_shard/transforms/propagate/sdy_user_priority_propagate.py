# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation by the priorities that users give to dimensions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.passes.registry import register
from mlir_shard.sharding.tensor import without_priorities
from mlir_shard.transforms.function_shardings import Side, set_shardings, shardings_of
from mlir_shard.transforms.operations import operations_named
from mlir_shard.transforms.propagate.phases import Plan
from mlir_shard.transforms.propagate.sdy_op_priority_propagate import OpPriorityPropagate


@register
class UserPriorityPropagate(OpPriorityPropagate):
    """Propagates like `sdy-op-priority-propagate`, once for each priority that a dimension sharding has, 0 first; a
    dimension takes part from its own priority on. Afterwards no sharding has priorities.
    """

    name = "sdy-user-priority-propagate"
    summary = "Runs the user-priority propagation algorithm"

    def plan(self) -> Plan:
        return replace(super().plan(), by_user_priority=True)

    def run(self, op: Any) -> None:
        super().run(op)
        # Nothing propagates to the results of functions that are called: their shardings lose their priorities here.
        for function in operations_named(op, "func.func"):
            shardings = shardings_of(function, Side.RESULTS)
            plain = {one: without_priorities(one) for one in set(shardings) if one is not None}
            if any(one != without for one, without in plain.items()):
                set_shardings(function, Side.RESULTS, [one and plain[one] for one in shardings])
