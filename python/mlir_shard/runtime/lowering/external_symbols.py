# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks before a program is started that the symbols its machine code refers to are there, and names what needs them.

A program calls functions by name, and LLVM adds calls of its runtime library for arithmetic that the CPU lacks.
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
# Each rank loads the libraries of MPI and BLAS, and has functions for calls on arrays and for products of narrow
# elements; intrinsics are expanded by LLVM.
_ELSEWHERE = ("MPI_", "ompi_", "cblas_", "openblas_", narrow_gemm.PREFIX, array_calls.PREFIX, "llvm.")
# Arithmetic on these types is instructions on every CPU.
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
    """RunError names each op of a module in the LLVM dialect that needs a symbol which this process does not have."""
    calls = [(op, f"this calls '{symbol}'") for op, symbol in _missing_functions(module)]
    arithmetic = [(op, f"'{op.name}' needs '{symbol}'") for op, symbol in _missing_in_arithmetic(module, cpu)]
    if calls or arithmetic:
        messages = [
            diagnostic.at("error", f"{what}, which no library here has", op.location)
            for op, what in (*calls, *arithmetic)
        ]
        raise RunError("the program cannot be run on this machine", messages)


def _missing_functions(module: Any) -> list[tuple[Any, str]]:
    """The calls of declared functions that are not there."""
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
    """The ops on unusual types for which LLVM calls a function that is not there, each kind of op compiled alone."""
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
    """The symbols that are not found when a function with `op` alone is compiled."""
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
        # LLVM would drop an op whose results are not used.
        for result in copy.results:
            ir.Operation.create("llvm.store", [], [result, address], {"volatile_": ir.UnitAttr.get()})
    try:
        compiler.make_engine(module, (), _PROBE)
    except compiler.SymbolsNotFound as error:
        return error.symbols
    return ()
