# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Legalization of upstream's shard collectives to element types that MPI can send and reduce.

It runs before any other lowering, while types still distinguish unsigned integers. The operations keep their names and
side effects, so that passes before `shard_to_mpi` merge equal collectives and drop dead ones.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.ir.op_names import op_names
from mlir_shard.runtime.collectives import element_types, point_to_point
from mlir_shard.runtime.collectives.element_types import Carrier
from mlir_shard.runtime.collectives.point_to_point import error

_REDUCING = frozenset(op_names("shard", "all_reduce reduce reduce_scatter"))
_MOVING = frozenset(op_names("shard", "all_gather all_slice all_to_all broadcast gather recv scatter send shift"))
_HALO = "shard.update_halo"


def legalize(module: Any, entry: str) -> None:
    """Rewrites the collectives of a local module; raises RunError at one that cannot be lowered."""
    for op in operations_named(module, "shard.shard"):
        raise error(f"'{op.name}' has no lowering to MPI: the program is not local", op)
    found = operations_named(module, *_REDUCING, *_MOVING, _HALO)
    known = shard.grids(module)
    for op in found:
        group = point_to_point.group_of(op, known)
        if op.name == _HALO:
            point_to_point.check_halo(op)
        else:
            point_to_point.check(op, group)
        if op.name == "shard.shift" and op.attributes["shift_axis"].value not in shard.grid_axes(op):
            axis = op.attributes["shift_axis"].value
            raise error(f"'{op.name}' along the grid axis {axis}, which is not one of its grid_axes", op)
    point_to_point.check_messages([op for op in found if op.name in point_to_point.NAMES], known, entry)
    for op in found:
        with ir.InsertionPoint(op), op.location:
            if op.name in _REDUCING:
                _carry_reduced(op)
            else:
                _carry(op, _for_moving(op), op.operands[0])


def _for_moving(op: Any) -> Carrier:
    carrier = element_types.for_moving(op.result.type.element_type)
    if carrier is None:
        raise error(f"'{op.name}' of {op.operands[0].type}: MPI cannot send this element type", op)
    return carrier


def _carry_reduced(op: Any) -> None:
    """Converts the operand to the result's element type before the reduction, and to a type that MPI can reduce."""
    value, element_type = op.operands[0], op.result.type.element_type
    carrier = element_types.for_reducing(element_type, shard.reduction_of(op))
    if carrier is None:
        wanted = f"by {op.attributes['reduction']}" if "reduction" in op.attributes else "by a sum"
        raise error(f"'{op.name}' of {op.result.type} {wanted} has no lowering to MPI", op)
    if value.type.element_type != element_type:
        converted = element_types.convert(value, element_type)
        if converted is None:
            raise error(f"'{op.name}' cannot convert the elements of {value.type} to {element_type}", op)
        value = converted
    _carry(op, carrier, value)


def _carry(op: Any, carrier: Carrier, value: Any) -> None:
    carried = carrier.enter(value)
    if carried == op.operands[0]:
        return
    attributes = dict(op.attributes.items())
    if carrier.reduction:
        attributes["reduction"] = ir.Attribute.parse(f"#shard<partial {carrier.reduction}>")
    result_type = ir.RankedTensorType.get(op.result.type.shape, carried.type.element_type)
    operands = [carried, *list(op.operands)[1:]]
    made = ir.Operation.create(op.name, results=[result_type], operands=operands, attributes=attributes)
    replace_with(op, [carrier.leave(made.result)])
