# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts reshards and collectives into the IR."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.resharding.sharding_steps import ReduceAlong, ReplicatedToUnreduced, Reshard, ShardingStep
from mlir_shard.sharding import AxisRefList, ListOfAxisRefLists, ReductionOp

REDUCTION_CODES = {ReductionOp.SUM: 0, ReductionOp.MAX: 1, ReductionOp.MIN: 2}


def apply(value: Any, steps: Iterable[ShardingStep], made: list[Any] | None = None) -> Any:
    """Applies steps to a value at the current insertion point and returns the result; `made` gets the operations."""
    for step in steps:
        value = _apply(value, step)
        if made is not None:
            made.append(value.owner.operation)
    return value


def put_after(point: Any, value: Any, steps: Iterable[ShardingStep]) -> Any:
    """Applies the steps to a value right after the op `point`, and replaces all uses of the value by the result.

    Returns the result.
    """
    here: list[Any] = []
    with ir.InsertionPoint.after(point):
        new = apply(value, steps, here)
    if here:
        value.replace_all_uses_except(new, here[:1])
    return new


def _apply(value: Any, step: ShardingStep) -> Any:
    name, attributes = operation_of(step)
    return ir.Operation.create(name, [value.type], [value], attributes, loc=value.location).results[0]


def operation_of(step: ShardingStep) -> tuple[str, dict[str, Any]]:
    """Returns the name and the attributes of the operation that performs a step."""
    if isinstance(step, Reshard):
        return "sdy.reshard", {"sharding": sdy.attribute(step.sharding)}
    attributes = {"out_sharding": sdy.attribute(step.sharding)}
    if isinstance(step, ReduceAlong):
        attributes["reduction_axes"] = sdy.attribute(AxisRefList(step.axes))
        if step.reduction is not ReductionOp.SUM:
            code = REDUCTION_CODES[step.reduction]
            attributes["reduction_op"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), code)
        return "sdy.all_reduce", attributes
    if isinstance(step, ReplicatedToUnreduced):
        attributes["axes"] = sdy.attribute(AxisRefList(step.axes))
        return "sdy.replicated_to_unreduced", attributes
    attributes["axes"] = sdy.attribute(ListOfAxisRefLists(tuple(map(AxisRefList, step.axes_per_dim))))
    return "sdy.sharded_to_unreduced", attributes
