# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data-flow edges, which stand between a value and all its users, and propagation barriers."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS, owning_op
from mlir_shard.dialects.verifiers.attributes import integer, optional
from mlir_shard.dialects.verifiers.sharding import check_sharding
from mlir_shard.dialects.verifiers.violation import Violation
from mlir_shard.host import ir
from mlir_shard.sharding import PropagationDirection, TensorSharding


def check_only_user(op: Any) -> None:
    """The operand has no other use."""
    count = len(list(op.operands[0].uses))
    if count != 1:
        raise Violation(f"has to be the only user of its operand, which has {count} uses")


def check_data_flow_edge(op: Any) -> None:
    """The operand is none of another sdy op's that has no region, and the sharding, if any, fits the result."""
    value = op.operands[0]
    if not isinstance(value.owner, ir.Block):
        source = owning_op(value).name
        if source.startswith("sdy.") and source not in ARGUMENT_OWNERS:
            allowed = " or ".join(ARGUMENT_OWNERS)
            raise Violation(f"has an operand that '{source}' defines, but of the sdy ops only {allowed} can")
    sharding = optional(op, "sharding", TensorSharding)
    if sharding is not None:
        check_sharding(sharding, op.results[0].type, op)


def check_func_data_flow_edge(op: Any) -> None:
    """The operand is an argument of a func.func or a result of a func.call."""
    value = op.operands[0]
    around = owning_op(value).name
    if isinstance(value.owner, ir.Block):
        if around != "func.func":
            raise Violation(f"has an argument of '{around}' as operand, but it has to be one of a 'func.func'")
    elif around != "func.call":
        raise Violation(f"has a result of '{around}' as operand, but it has to be one of a 'func.call'")


def check_propagation_barrier(op: Any) -> None:
    """The barrier bars at least one direction."""
    direction = integer(op, "allowed_direction", 32)
    if direction not in list(PropagationDirection):
        raise Violation(f"attribute 'allowed_direction' must be 0 (NONE), 1 (FORWARD) or 2 (BACKWARD), got {direction}")
    if direction == PropagationDirection.BOTH:
        raise Violation("allows BOTH directions and so bars nothing: allowed_direction is NONE, FORWARD or BACKWARD")
