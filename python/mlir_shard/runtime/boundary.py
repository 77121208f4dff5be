# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function takes and gives that is no tensor: scalars cross its boundary as tensors of rank 0, tokens do not."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

TOKEN = "!stablehlo.token"

_tensor = host.dialect("tensor")
_EXTRACT, _FROM_ELEMENTS = "tensor.extract", "tensor.from_elements"

CROSSING = frozenset({_EXTRACT, _FROM_ELEMENTS})
"""What takes scalars out of tensors, and puts them in."""


def is_token(type_: Any) -> bool:
    """Whether a type says only what comes before what."""
    return str(type_) == TOKEN


def is_scalar(type_: Any) -> bool:
    """Whether a type is one of those that elements of tensors have."""
    return isinstance(type_, (ir.ComplexType, ir.FloatType, ir.IndexType, ir.IntegerType))


def cross_as_tensors(module: Any, function: Any) -> None:
    """Has a function of a module take and give tensors alone, in place.

    Scalars are taken out of tensors of rank 0, and put in. A token that it was given it makes, one that it gave nobody
    sees. What the function does not call is erased where it calls the function.
    """
    type_ = function.attributes["function_type"].value
    if not any(is_scalar(one) or is_token(one) for one in (*type_.inputs, *type_.results)):
        return
    _erase_callers(module, function)
    for name in ("arg_attrs", "res_attrs"):
        # They say something of each argument and result that there was.
        if name in function.attributes:
            del function.attributes[name]
    with function.location:
        inputs = _take(function.regions[0].blocks[0])
        results = [_crossing(one) for one in type_.results if not is_token(one)]
        for last in _all(function, "func.return"):
            _give(last)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _crossing(type_: Any) -> Any:
    return ir.RankedTensorType.get([], type_) if is_scalar(type_) else type_


def _take(block: Any) -> list[Any]:
    """Changes the arguments; returns the types that they have then."""
    with ir.InsertionPoint.at_block_begin(block):
        for index in reversed(range(len(block.arguments))):
            argument = block.arguments[index]
            if is_token(argument.type):
                made = ir.Operation.create("stablehlo.after_all", [argument.type])
                argument.replace_all_uses_with(made.results[0])
                block.erase_argument(index)
            elif is_scalar(argument.type):
                scalar = argument.type
                argument.set_type(_crossing(scalar))
                taken = ir.Operation.create(_EXTRACT, [scalar], [argument])
                argument.replace_all_uses_except(taken.results[0], [taken])
    return [argument.type for argument in block.arguments]


def _give(last: Any) -> None:
    with ir.InsertionPoint(last), last.location:
        given = [
            _tensor.from_elements(_crossing(value.type), [value]) if is_scalar(value.type) else value
            for value in last.operands
            if not is_token(value.type)
        ]
        ir.Operation.create(last.name, [], given)
    last.erase()


def _erase_callers(module: Any, function: Any) -> None:
    """Erases the functions that call it, and those that call these."""
    name = ir.StringAttr(function.attributes["sym_name"]).value
    wanted, callers = {name}, {}
    for op in _all(module.operation, "func.func"):
        callers[op.attributes["sym_name"].value] = op
    while wanted:
        called = {
            known
            for known, op in callers.items()
            if known != name and any(call.attributes["callee"].value in wanted for call in _all(op, "func.call"))
        }
        for known in called:
            callers.pop(known).erase()
        wanted = called


def _all(root: Any, name: str) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found
