# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an op reduces with, so that partial results of a sharded reduction factor can be combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.linalg import is_structured
from mlir_shard.sharding import ReductionOp

# Unsigned maxima and minima are missing on purpose: collectives compare signless integers as signed ones.
_COMBINERS = {
    "arith.addf": ReductionOp.SUM,
    "arith.addi": ReductionOp.SUM,
    "arith.maximumf": ReductionOp.MAX,
    "arith.maxnumf": ReductionOp.MAX,
    "arith.maxsi": ReductionOp.MAX,
    "arith.minimumf": ReductionOp.MIN,
    "arith.minnumf": ReductionOp.MIN,
    "arith.minsi": ReductionOp.MIN,
    "stablehlo.add": ReductionOp.SUM,
    "stablehlo.maximum": ReductionOp.MAX,
    "stablehlo.minimum": ReductionOp.MIN,
}
SELECTING_OPS = ("stablehlo.dynamic_slice", "stablehlo.gather", "stablehlo.slice")
"""Ops that take elements out of their first operand: a sum, as a device that does not have one contributes zero."""

_SUMMING_OPS = ("stablehlo.convolution", "stablehlo.dot", "stablehlo.dot_general", *SELECTING_OPS)
# Their bodies take the accumulators first.
_COMBINING_OPS = ("stablehlo.reduce", "stablehlo.scatter")

Combiner = Callable[[Any], "ReductionOp | None"]
_by_name: dict[str, Combiner] = {}


def reduction_of(*names: str) -> Callable[[Combiner], Combiner]:
    """Registers a function that says what ops of these names reduce with, None where no collective can."""

    def register(function: Combiner) -> Combiner:
        for name in names:
            _by_name[name] = function
        return function

    return register


def reduction_op(op: Any) -> ReductionOp | None:
    """The reduction that combines partial results of `op`; None where there is none that a collective does.

    All results have to be reduced alike. Element types on which a collective means something else (booleans,
    unsigned and complex numbers) have none.
    """
    return reduction_kind(op) if all(_is_combinable(result.type) for result in op.operation.results) else None


def reduction_kind(op: Any) -> ReductionOp | None:
    """As `reduction_op`, for collectives that reduce like the op on every element type."""
    op = op.operation
    if op.name in _by_name:
        return _by_name[op.name](op)
    if op.name in _SUMMING_OPS:
        return ReductionOp.SUM
    if op.name in _COMBINING_OPS:
        return reduction_of_body(op, first_accumulator=0)
    if is_structured(op):
        return reduction_of_body(op, first_accumulator=len(op.operands) - len(op.results))
    return None


def _is_combinable(type_: Any) -> bool:
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    if isinstance(element, ir.IntegerType):
        return element.width > 1 and element.is_signless
    return isinstance(element, ir.FloatType)


def reduction_of_body(op: Any, first_accumulator: int = 0) -> ReductionOp | None:
    """What the body of an op reduces with: it combines argument `first_accumulator + i` with something else, and yields
    it as value i. None where it does not."""
    block = op.regions[0].blocks[0]
    terminator = list(block.operations)[-1].operation
    found = {
        _of_yielded(value, block.arguments[first_accumulator + number])
        for number, value in enumerate(terminator.operands)
    }
    return found.pop() if len(found) == 1 else None


def _of_yielded(value: Any, accumulator: Any) -> ReductionOp | None:
    if isinstance(value.owner, ir.Block):
        return None
    combiner = value.owner.operation
    if combiner.name not in _COMBINERS or len(combiner.operands) != 2:
        return None
    uses = list(accumulator.uses)
    if len(uses) != 1 or uses[0].owner.operation != combiner:
        return None
    return _COMBINERS[combiner.name]
