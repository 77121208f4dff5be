# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO that runs an operation on one device only."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.passes.registry import PassFailure

TOKEN = "!stablehlo.token"


def is_this_device(device: int, *, by_replica: bool) -> Any:
    """A tensor<i1> that is true on the device of that number, at the current insertion point and location."""
    number = stablehlo.device_number(by_replica=by_replica)
    return stablehlo.compare("EQ", number, stablehlo.scalar(device))


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
        return stablehlo.build("create_token", type_)
    if not (
        isinstance(type_, ir.RankedTensorType)
        and type_.has_static_shape
        and (stablehlo.has_zero(type_.element_type) or isinstance(type_.element_type, ir.IndexType))
    ):
        raise PassFailure(
            f"'{op.name}' op cannot run on one device only: there is no constant zero of type {type_} "
            "for the others, which takes a static shape and elements that are integers or floats",
            op,
        )
    return stablehlo.splat(type_, 0)


def _return(values: list[Any]) -> None:
    ir.Operation.create("stablehlo.return", [], values)
