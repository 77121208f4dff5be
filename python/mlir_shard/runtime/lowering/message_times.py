# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measurement of message times: every call of MPI is wrapped in a function that reads the clock before and after it.

A program counts its nanoseconds in MPI, its nanoseconds outside of MPI while a started message has not been waited for,
and its calls. Reading the clock takes about 50 ns, and a call of MPI at least a microsecond.
"""

from __future__ import annotations

from typing import Any, Final

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.runtime.launch.jit import MESSAGES_INTERFACE

_MPI: Final = "MPI_"
_STARTS: Final = "MPI_I"
_WAITS: Final = "MPI_Wait"
_TIMED: Final = "timed."
_COUNTERS: Final = "message_counters"
# The counters: the three that are reported, then the number of messages in flight, and the time of the last call's end.
_STATE: Final = f"""
llvm.mlir.global internal @{_COUNTERS}(dense<0> : tensor<5xi64>) : !llvm.array<5 x i64>
llvm.func @clock_gettime(i32, !llvm.ptr) -> i32
llvm.func internal @{_TIMED}clock() -> i64 {{
  %one = llvm.mlir.constant(1 : i64) : i64
  %monotonic = llvm.mlir.constant(1 : i32) : i32
  %second = llvm.mlir.constant(1000000000 : i64) : i64
  %time = llvm.alloca %one x !llvm.struct<(i64, i64)> : (i64) -> !llvm.ptr
  %failed = llvm.call @clock_gettime(%monotonic, %time) : (i32, !llvm.ptr) -> i32
  %seconds = llvm.load %time : !llvm.ptr -> i64
  %rest = llvm.getelementptr %time[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %nanoseconds = llvm.load %rest : !llvm.ptr -> i64
  %whole = llvm.mul %seconds, %second : i64
  %sum = llvm.add %whole, %nanoseconds : i64
  llvm.return %sum : i64
}}
llvm.func internal @{_TIMED}add(%index: i64, %amount: i64) {{
  %counters = llvm.mlir.addressof @{_COUNTERS} : !llvm.ptr
  %counter = llvm.getelementptr %counters[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %before = llvm.load %counter : !llvm.ptr -> i64
  %after = llvm.add %before, %amount : i64
  llvm.store %after, %counter : i64, !llvm.ptr
  llvm.return
}}
llvm.func @{MESSAGES_INTERFACE}(%read: !llvm.ptr) {{
  %size = llvm.mlir.constant(24 : i64) : i64
  %zero = llvm.mlir.constant(0 : i8) : i8
  %counters = llvm.mlir.addressof @{_COUNTERS} : !llvm.ptr
  "llvm.intr.memcpy"(%read, %counters, %size) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  "llvm.intr.memset"(%counters, %zero, %size) <{{isVolatile = false}}> : (!llvm.ptr, i8, i64) -> ()
  llvm.return
}}
"""


def count(module: Any) -> None:
    """Makes a module in the LLVM dialect count the times of its MPI calls, in place."""
    declared = {
        op.operation.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if op.operation.name == "llvm.func"
        and op.operation.attributes["sym_name"].value.startswith(_MPI)
        and not len(op.operation.regions[0].blocks)
    }
    if not declared:
        return
    for call in operations_named(module, "llvm.call"):
        if "callee" in call.attributes and call.attributes["callee"].value in declared:
            name = _TIMED + call.attributes["callee"].value
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name)
    functions = "".join(_timed(name, function) for name, function in declared.items())
    # Without local scope, printing each operation would number all values of the module.
    declarations = "".join(f"{one.get_asm(use_local_scope=True)}\n" for one in declared.values())
    parsed = ir.Module.parse(_STATE + declarations + functions, module.context)
    for op in list(parsed.body.operations):
        if op.operation.attributes["sym_name"].value not in declared:
            module.body.append(op.operation.clone())


def _timed(name: str, function: Any) -> str:
    """Returns the text of the function that calls an MPI function and counts its time."""
    types = function.attributes["function_type"].value
    inputs, result = list(map(str, types.inputs)), str(types.return_type)
    arguments = [f"%argument{index}" for index in range(len(inputs))]
    parameters = ", ".join(f"{one}: {type_}" for one, type_ in zip(arguments, inputs, strict=True))
    started = 1 if name.startswith(_STARTS) else -1 if name == _WAITS else 0
    return f"""
llvm.func internal @{_TIMED}{name}({parameters}) -> {result}
    attributes {{passthrough = ["noinline"]}} {{
  %waited = llvm.mlir.constant(0 : i64) : i64
  %overlapped = llvm.mlir.constant(1 : i64) : i64
  %calls = llvm.mlir.constant(2 : i64) : i64
  %pending = llvm.mlir.constant(3 : i64) : i64
  %change = llvm.mlir.constant({started} : i64) : i64
  %begin = llvm.call @{_TIMED}clock() : () -> i64
  %counters = llvm.mlir.addressof @{_COUNTERS} : !llvm.ptr
  %underway = llvm.getelementptr %counters[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %count = llvm.load %underway : !llvm.ptr -> i64
  %last = llvm.getelementptr %counters[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %left = llvm.load %last : !llvm.ptr -> i64
  %outside = llvm.sub %begin, %left : i64
  %is_pending = llvm.icmp "sgt" %count, %waited : i64
  %during = llvm.select %is_pending, %outside, %waited : i1, i64
  llvm.call @{_TIMED}add(%overlapped, %during) : (i64, i64) -> ()
  %result = llvm.call @{name}({", ".join(arguments)}) : ({", ".join(inputs)}) -> {result}
  %end = llvm.call @{_TIMED}clock() : () -> i64
  %inside = llvm.sub %end, %begin : i64
  llvm.call @{_TIMED}add(%waited, %inside) : (i64, i64) -> ()
  llvm.call @{_TIMED}add(%calls, %overlapped) : (i64, i64) -> ()
  llvm.call @{_TIMED}add(%pending, %change) : (i64, i64) -> ()
  llvm.store %end, %last : i64, !llvm.ptr
  llvm.return %result : {result}
}}
"""
