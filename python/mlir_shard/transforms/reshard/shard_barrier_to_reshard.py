# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Once propagation is over, a barrier to it is at most a change of sharding."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, register


@register
class BarrierToReshard(Pass):
    """Replaces each `sdy.propagation_barrier` by an `sdy.reshard`, or by its operand where that is sharded alike.

    A barrier without a sharding of its own is its operand too.
    """

    name = "shard-barrier-to-reshard"
    anchor = "func.func"
    summary = "Converts propagation barriers into reshards, where their sides are sharded differently"

    def run(self, op: Any) -> bool:
        barriers = operations_named(op, "sdy.propagation_barrier")
        for barrier in barriers:
            value, result = barrier.operands[0], barrier.results[0]
            sharding = sdy.get_sharding(result)
            if sharding is not None and not sharding.is_equivalent(sharding_of(value)):
                attributes = {"sharding": sdy.attribute(sharding, op.context)}
                with ir.InsertionPoint(barrier):
                    made = ir.Operation.create("sdy.reshard", [result.type], [value], attributes, loc=barrier.location)
                value = made.results[0]
            result.replace_all_uses_with(value)
            barrier.erase()
        return bool(barriers)
