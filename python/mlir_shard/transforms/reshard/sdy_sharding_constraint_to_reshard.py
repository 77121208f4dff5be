# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Once propagation is over, a sharding constraint is a change of sharding."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, register


@register
class ShardingConstraintToReshard(Pass):
    """Replaces each `sdy.sharding_constraint` by an `sdy.reshard` to the same sharding."""

    name = "sdy-sharding-constraint-to-reshard"
    anchor = "func.func"
    summary = "Converts sharding constraints into reshards"

    def run(self, op: Any) -> bool:
        constraints = operations_named(op, "sdy.sharding_constraint")
        for constraint in constraints:
            attributes = {name: constraint.attributes[name] for name in constraint.attributes}
            with ir.InsertionPoint(constraint):
                reshard = ir.Operation.create(
                    "sdy.reshard",
                    [constraint.results[0].type],
                    [constraint.operands[0]],
                    attributes,
                    loc=constraint.location,
                )
            constraint.results[0].replace_all_uses_with(reshard.results[0])
            constraint.erase()
        return bool(constraints)
