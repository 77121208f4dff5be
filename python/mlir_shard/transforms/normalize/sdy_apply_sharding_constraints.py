# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding constraints that dictate the sharding of what they constrain."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.walk import ops_below


@register
class ApplyShardingConstraints(Pass):
    """Gives the operand of a fully closed sharding constraint the constraint's sharding, where it has none and where
    no other constraint on it asks for another one."""

    name = "sdy-apply-sharding-constraints"
    anchor = "builtin.module"
    summary = "Applies constraints that dictate the sharding of their input"

    def run(self, op: Any) -> None:
        for inner in ops_below(op):
            if inner.name == "sdy.sharding_constraint":
                _apply(inner)


def _apply(constraint: Any) -> None:
    operand = constraint.operands[0]
    sharding = sdy.get_sharding(constraint.results[0])
    if sharding is None or not sharding.is_fully_closed or sdy.get_sharding(operand) is not None:
        return
    if not _can_have_sharding(operand):
        return
    if all(_asks_for(use.owner.operation, sharding) for use in operand.uses):
        sdy.set_sharding(operand, sharding)


def _can_have_sharding(value: Any) -> bool:
    """Whether a sharding can be attached to the value: of block arguments only a function's can have one."""
    return not isinstance(value.owner, ir.Block) or value.owner.owner.operation.name == "func.func"


def _asks_for(user: Any, sharding: TensorSharding) -> bool:
    """Whether a user asks for this sharding, or for none. A manual computation always asks for its own."""
    if user.name == "sdy.sharding_constraint":
        return sdy.get_sharding(user.results[0]) == sharding
    return user.name != "sdy.manual_computation"
