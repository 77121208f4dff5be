# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifications of manual computations: inputs nobody uses, and bodies that are manual on nothing."""

from __future__ import annotations

from math import prod
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.type_runs import type_run_attributes
from mlir_shard.host import ir
from mlir_shard.sharding import ManualAxes, TensorShardingPerValue
from mlir_shard.sharding.verify import common_mesh
from mlir_shard.transforms.canonicalize.pattern import Pattern, users

LABEL = "sdy-manual-computation"


def _value(op: Any, name: str) -> Any:
    return op.attributes[name].value


def unused_inputs(op: Any, rewriter: Any) -> bool:
    """Inputs that the body does not use go, with their shardings."""
    body = op.regions[0].blocks[0]
    used = [bool(list(argument.uses)) for argument in body.arguments]
    if all(used):
        return False
    shardings: TensorShardingPerValue = _value(op, "in_shardings")
    kept = tuple(sharding for sharding, keep in zip(shardings, used, strict=True) if keep)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["in_shardings"] = sdy.attribute(TensorShardingPerValue(kept), op.context)
    operands = [operand for operand, keep in zip(op.operands, used, strict=True) if keep]
    results = [result.type for result in op.results]
    smaller = ir.Operation.create(
        op.name,
        results=results,
        operands=operands,
        attributes=attributes | type_run_attributes(operands, results, op.context),
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    body.append_to(smaller.regions[0])
    for index in reversed([index for index, keep in enumerate(used) if not keep]):
        body.erase_argument(index)
    rewriter.replace_op(op, smaller)
    return True


def empty(op: Any, rewriter: Any) -> bool:
    """A manual computation that takes nothing, does nothing and gives nothing goes."""
    if len(op.operands) or len(op.results) or len(op.regions[0].blocks[0].operations) > 1:
        return False
    rewriter.erase_op(op)
    return True


def trivial_manual_axes(op: Any, rewriter: Any) -> bool:
    """A body that is manual on one device is what it is without being manual, and moves out."""
    manual: ManualAxes = _value(op, "manual_axes")
    if manual.value:
        shardings = (*_value(op, "in_shardings").shardings, *_value(op, "out_shardings").shardings)
        mesh = common_mesh(sdy.mesh_of(sharding, op) for sharding in shardings)
        if mesh is None or prod(mesh.axis_size(axis) for axis in manual.value) != 1:
            return False
    body = op.regions[0].blocks[0]
    # A data-flow edge has to stay the only user of what owns the edge.
    if any(user.name == "sdy.data_flow_edge" for value in (*body.arguments, *op.results) for user in users(value)):
        return False
    for argument, operand in zip(body.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *inner, terminator = body.operations
    for one in inner:
        one.operation.move_before(op)
    rewriter.replace_op(op, list(terminator.operation.operands))
    return True


PATTERNS = (
    Pattern("manual-computation-unused-inputs", LABEL, "sdy.manual_computation", unused_inputs),
    Pattern("manual-computation-empty", LABEL, "sdy.manual_computation", empty),
    Pattern("manual-computation-trivial", LABEL, "sdy.manual_computation", trivial_manual_axes),
)
