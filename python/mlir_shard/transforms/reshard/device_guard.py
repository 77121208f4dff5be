# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO that runs an operation on one device only."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure

TOKEN = "!stablehlo.token"


def is_this_device(device: int, *, by_replica: bool) -> Any:
    """A tensor<i1> that is true on the device of that number, at the current insertion point and location."""
    number_type = _scalar(ir.IntegerType.get_signless(64))
    own_type = _scalar(ir.IntegerType.get_unsigned(32))
    own = _create("stablehlo.replica_id" if by_replica else "stablehlo.partition_id", own_type)
    number = _create("stablehlo.convert", number_type, own)
    wanted = _constant(number_type, ir.IntegerAttr.get(number_type.element_type, device))
    direction = ir.Attribute.parse("#stablehlo<comparison_direction EQ>")
    condition_type = _scalar(ir.IntegerType.get_signless(1))
    return _create("stablehlo.compare", condition_type, number, wanted, comparison_direction=direction)


def guarded(op: Any, condition: Any) -> Any:
    """A `stablehlo.if` that runs a copy of `op` where the condition is true, and gives zeros and tokens where not.

    It is made at the current insertion point and location. Raises PassFailure where a result has no zero.
    """
    types = [result.type for result in op.results]
    guard = ir.Operation.create("stablehlo.if", types, [condition], regions=2)
    taken, other = (region.blocks.append() for region in guard.regions)
    with ir.InsertionPoint(taken):
        _return(list(op.clone().operation.results))
    with ir.InsertionPoint(other):
        _return([_nothing(type_, op) for type_ in types])
    return guard


def _nothing(type_: Any, op: Any) -> Any:
    if str(type_) == TOKEN:
        return _create("stablehlo.create_token", type_)
    zero = _zero(type_.element_type) if isinstance(type_, ir.RankedTensorType) and type_.has_static_shape else None
    if zero is None:
        raise PassFailure(
            f"'{op.name}' op cannot run on one device only: there is no constant zero of type {type_} "
            "for the others, which takes a static shape and elements that are integers or floats",
            op,
        )
    return _constant(type_, zero)


def _zero(element_type: Any) -> Any | None:
    if isinstance(element_type, ir.FloatType):
        return ir.FloatAttr.get(element_type, 0.0)
    return ir.IntegerAttr.get(element_type, 0) if isinstance(element_type, ir.IntegerType | ir.IndexType) else None


def _scalar(element_type: Any) -> Any:
    return ir.RankedTensorType.get([], element_type)


def _constant(type_: Any, element: Any) -> Any:
    return _create("stablehlo.constant", type_, value=ir.DenseElementsAttr.get_splat(type_, element))


def _create(name: str, type_: Any, *operands: Any, **attributes: Any) -> Any:
    return ir.Operation.create(name, [type_], list(operands), attributes).results[0]


def _return(values: list[Any]) -> None:
    ir.Operation.create("stablehlo.return", [], values)
