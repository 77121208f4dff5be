# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of the `math` dialect on f32 and f64 to calls of the C library, which LLVM can vectorize.

LLVM's intrinsics for some of them become the same calls, but are not vectorized. See `launch.libraries.vector_math`.
"""

from __future__ import annotations

from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.runtime.launch.libraries.vector_math import ONE_ARGUMENT, TWO_ARGUMENTS

_func = host.dialect("func")
_NAMES: Final = {
    **{f"math.{name}": name for name in (*ONE_ARGUMENT, *TWO_ARGUMENTS) if name != "pow"},
    "math.powf": "pow",
}
# The functions access no memory and always return.
_ATTRIBUTES: Final = """{
  llvm.no_unwind, llvm.will_return, llvm.memory_effects = #llvm.memory_effects<other = none, argMem = none,
    inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>
}"""


def lower(module: Any) -> None:
    """Replaces the ops of a module on scalars by calls, in place."""
    declared: set[str] = set()
    for op in operations_named(module, *_NAMES):
        type_ = op.results[0].type
        if not isinstance(type_, (ir.F32Type, ir.F64Type)):
            continue
        symbol = _NAMES[op.name] + ("f" if isinstance(type_, ir.F32Type) else "")
        if symbol not in declared:
            declared.add(symbol)
            _declare(module, symbol, [one.type for one in op.operands], type_)
        with ir.InsertionPoint(op), op.location:
            replace_with(op, _func.CallOp([type_], symbol, list(op.operands)).results)


def _declare(module: Any, symbol: str, operands: list[Any], result: Any) -> None:
    symbols = [one.operation.attributes for one in module.body.operations if "sym_name" in one.operation.attributes]
    if any(one["sym_name"].value == symbol for one in symbols):
        return
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
        function = _func.FuncOp(symbol, ir.FunctionType.get(operands, [result]), visibility="private")
    for named in ir.DictAttr.parse(_ATTRIBUTES):
        function.attributes[named.name] = named.attr
