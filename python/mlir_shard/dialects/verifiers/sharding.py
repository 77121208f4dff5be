# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of shardings on operations: against the types of values, the module's meshes and enclosing manual axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects.attribute import value_of
from mlir_shard.dialects.data_flow import ancestors, sharding_before_barriers
from mlir_shard.dialects.verifiers.checks import require, required, shape_of
from mlir_shard.dialects.verifiers.meshes import find_mesh, mesh_lookup
from mlir_shard.sharding import ManualAxes, ReductionOp, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.verify import (
    check_tensor_sharding,
    check_tensor_sharding_per_value,
    check_unreduced_transition,
    common_mesh,
)


def bound_manual_axes(op: Any) -> dict[str, Any]:
    """Returns the manual axes of the manual computations around `op`, each with its manual computation."""
    bound: dict[str, Any] = {}
    for around in ancestors(op):
        if around.name == "sdy.manual_computation":
            manual = value_of(around, "manual_axes", ManualAxes)
            for name in manual.value if manual is not None else ():
                bound[name] = around
    return bound


def check_sharding(sharding: TensorSharding, type_: Any, op: Any) -> None:
    """Raises Violation if a sharding on `op` is not valid for a value of type `type_`."""
    shape = shape_of(type_)
    require(check_tensor_sharding(sharding, find_mesh(sharding, op), shape, manual_axes=bound_manual_axes(op)))


def check_shardings(shardings: TensorShardingPerValue, types: Sequence[Any], op: Any, kind: str) -> None:
    """Checks that there is one valid sharding on `op` for each value; `kind` is "operand" or "result"."""
    shapes = [shape_of(type_) for type_ in types]
    require(
        check_tensor_sharding_per_value(
            shardings, mesh_lookup(op), shapes, kind=kind, manual_axes=bound_manual_axes(op)
        )
    )


def check_sharding_attribute(op: Any) -> None:
    """Checks that the attribute `sharding` exists and is valid for the result."""
    check_sharding(required(op, "sharding", TensorSharding), op.results[0].type, op)


def check_becomes_sharding(op: Any) -> None:
    """Checks the change of unreduced axes from the operand's sharding to the attribute `sharding`.

    Axes may be reduced or stay unreduced as they are. Axes become unreduced only with a sum, as a value and zeros on
    the other devices have the value as their sum, but not as their maximum.
    """
    source = op.operands[0]
    before = sharding_before_barriers(source)
    # An invalid sharding is reported where it is attached.
    if before is None or check_tensor_sharding(before, find_mesh(before, op), shape_of(source.type)) is not None:
        return
    after = required(op, "sharding", TensorSharding)
    mesh = common_mesh((find_mesh(before, op), find_mesh(after, op)))
    require(
        check_unreduced_transition((before,), (after,), mesh, introduced=ReductionOp.SUM, removed=before.reduction_op)
    )
