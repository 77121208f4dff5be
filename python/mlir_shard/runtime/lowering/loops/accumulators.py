# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accumulation of floats narrower than f32 in f32, rounded once at the end, as in XLA."""

from __future__ import annotations

from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.runtime.lowering.blas.contractions import contraction

_arith = host.dialect("arith")
_GENERIC = "linalg.generic"
_SEGMENTS, _ITERATORS = "operandSegmentSizes", "iterator_types"
_COMBINING: Final = frozenset(
    f"arith.{name}" for name in ("addf", "maximumf", "maxnumf", "minimumf", "minnumf", "mulf", "subf")
)


def widen(module: Any) -> None:
    """Gives each `linalg.generic` on tensors that reduces narrow floats a wide destination, in place."""
    for op in operations_named(module, _GENERIC):
        if op.results and any("reduction" in str(one) for one in op.attributes[_ITERATORS]):
            narrow = [place for place in range(len(op.results)) if _accumulates(op, place)]
            # The calls of BLAS for contractions already accumulate in f32.
            if narrow and contraction(op) is None:
                _widen(op, narrow)


def _accumulates(op: Any, place: int) -> bool:
    """Returns whether a result is a narrow float and the body only combines a value with it."""
    if not _is_narrow(op.results[place].type.element_type):
        return False
    body = op.regions[0].blocks[0]
    *_, end = body.operations
    combiner = end.operation.operands[place].owner
    before = body.arguments[ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS])[0] + place]
    if isinstance(combiner, ir.Block) or combiner.operation.name not in _COMBINING or len(list(before.uses)) != 1:
        return False
    combiner = combiner.operation
    is_first = combiner.operands[0] == before
    is_operand = is_first or (combiner.operands[1] == before and combiner.name != "arith.subf")
    return is_operand and combiner.operands[0] != combiner.operands[1] and len(list(combiner.results[0].uses)) == 1


def _is_narrow(type_: Any) -> bool:
    return isinstance(type_, ir.FloatType) and type_.width < 32


def _widen(op: Any, places: list[int]) -> None:
    inputs, body = ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS])[0], op.regions[0].blocks[0]
    f32, operands, types = ir.F32Type.get(), list(op.operands), [one.type for one in op.results]
    with ir.InsertionPoint(op), op.location:
        for place in places:
            types[place] = ir.RankedTensorType.get(types[place].shape, f32)
            operands[inputs + place] = _arith.ExtFOp(types[place], operands[inputs + place]).result
        attributes = {name: op.attributes[name] for name in op.attributes}
        made = ir.Operation.create(_GENERIC, types, operands, attributes, regions=1)
        body.append_to(made.regions[0])
        values = list(made.results)
        for place in places:
            values[place] = _arith.TruncFOp(op.results[place].type, values[place]).result
    body = made.regions[0].blocks[0]
    *_, end = body.operations
    for place in places:
        before, combiner = body.arguments[inputs + place], end.operation.operands[place].owner.operation
        before.set_type(f32)
        with ir.InsertionPoint(combiner), combiner.location:
            for number, operand in enumerate(list(combiner.operands)):
                if operand != before:
                    combiner.operands[number] = _arith.ExtFOp(f32, operand).result
        combiner.results[0].set_type(f32)
    replace_with(op, values)
