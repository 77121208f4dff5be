# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks, before a program is started, that the symbols to which its machine code will refer exist.

A program calls functions by name, and LLVM emits calls of its runtime library for arithmetic that the CPU lacks.
"""

from __future__ import annotations

import ctypes
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named, operations_where
from mlir_shard.passes import diagnostic
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import compiler
from mlir_shard.runtime.launch.cpu import Cpu
from mlir_shard.runtime.launch.libraries import array_calls, narrow_gemm

_FUNCTION = "llvm.func"
_CALL = "llvm.call"
# Prefixes of symbols that need no check: each rank loads MPI and BLAS, and provides the functions of array calls and of
# products of narrow elements; LLVM expands intrinsics.
_ELSEWHERE = ("MPI_", "ompi_", "cblas_", "openblas_", narrow_gemm.PREFIX, array_calls.PREFIX, "llvm.")
# Every CPU has instructions for arithmetic on these types.
_INTEGER_BITS = 64
_FLOATS = (ir.F32Type, ir.F64Type)
# Ops that only move values of any type.
_MOVES = frozenset(
    {"llvm.bitcast", "llvm.br", "llvm.call", "llvm.cond_br", "llvm.extractvalue", "llvm.func", "llvm.insertvalue"}
    | {"llvm.load", "llvm.mlir.constant", "llvm.mlir.global", "llvm.mlir.poison", "llvm.mlir.undef", "llvm.mlir.zero"}
    | {"llvm.return", "llvm.select", "llvm.store", "llvm.switch", "llvm.unreachable"}
)
_PROBE = "probe"


def check(module: Any, cpu: Cpu) -> None:
    """Raises RunError, which names the ops, if ops in the LLVM dialect need symbols that this process lacks."""
    calls = [(op, f"this calls '{symbol}'") for op, symbol in _missing_functions(module)]
    arithmetic = [(op, f"'{op.name}' needs '{symbol}'") for op, symbol in _missing_in_arithmetic(module, cpu)]
    if calls or arithmetic:
        messages = [
            diagnostic.at("error", f"{what}, which no available library defines", op.location)
            for op, what in (*calls, *arithmetic)
        ]
        raise RunError("the program cannot be run on this machine", messages)


def _missing_functions(module: Any) -> list[tuple[Any, str]]:
    """Returns the calls of declared functions that this process lacks, with the functions' names."""
    process = ctypes.CDLL(None)
    declared = {
        op.operation.attributes["sym_name"].value
        for op in module.body.operations
        if op.operation.name == _FUNCTION and not len(op.operation.regions[0].blocks)
    }
    missing = {name for name in declared if not name.startswith(_ELSEWHERE) and not hasattr(process, name)}
    if not missing:
        return []
    calls = [(op, op.attributes["callee"].value) for op in operations_named(module, _CALL) if "callee" in op.attributes]
    return [(op, name) for op, name in calls if name in missing]


def _missing_in_arithmetic(module: Any, cpu: Cpu) -> list[tuple[Any, str]]:
    """Returns ops for which LLVM calls missing functions, found by compiling each kind of op on unusual types alone."""
    found: list[tuple[Any, str]] = []
    probed: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for op in operations_where(module, lambda name: name not in _MOVES):
        types = [value.type for value in (*op.operands, *op.results)]
        if all(map(_is_everywhere, types)) or len(op.regions) or len(op.successors):
            continue
        kind = op.name, tuple(types), len(op.operands)
        if kind not in probed:
            probed[kind] = _symbols_missing_for(op, cpu)
        found += [(op, symbol) for symbol in probed[kind]]
    return found


def _is_everywhere(type_: Any) -> bool:
    if isinstance(type_, ir.VectorType):
        return _is_everywhere(type_.element_type)
    if isinstance(type_, ir.IntegerType):
        return type_.width <= _INTEGER_BITS
    return isinstance(type_, _FLOATS) or str(type_).startswith("!llvm.")


def _symbols_missing_for(op: Any, cpu: Cpu) -> tuple[str, ...]:
    """Returns the symbols that are not found if a function with only `op` is compiled."""
    arguments = [f"%a{index}: {value.type}" for index, value in enumerate(op.operands)]
    text = f"llvm.func @_mlir_ciface_{_PROBE}({', '.join([*arguments, '%result: !llvm.ptr'])}) {{\n  llvm.return\n}}"
    module = ir.Module.parse(text)
    function = module.body.operations[0].operation
    cpu.set_on(function)
    block = function.regions[0].blocks[0]
    *operands, address = block.arguments
    with ir.InsertionPoint.at_block_begin(block):
        attributes = {name: op.attributes[name] for name in op.attributes}
        copy = ir.Operation.create(op.name, [value.type for value in op.results], operands, attributes)
        # LLVM would drop an op with unused results.
        for result in copy.results:
            ir.Operation.create("llvm.store", [], [result, address], {"volatile_": ir.UnitAttr.get()})
    try:
        compiler.make_engine(module, (), _PROBE)
    except compiler.SymbolsNotFound as error:
        return error.symbols
    return ()
