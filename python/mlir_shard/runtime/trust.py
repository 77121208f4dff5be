# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds native code in modules: operations that could do more than compute on tensors, see docs/trust.md.

A module is compiled to machine code and runs with the rights of its user. Operations that only compute on tensors
cannot refer to addresses or functions of the system.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.editing import operations_where
from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.runtime.error import RunError

# Dialects of machine code, addresses, devices and runtime libraries.
_NATIVE_DIALECTS = frozenset(
    {"acc", "amdgpu", "arm_neon", "arm_sme", "arm_sve", "async", "emitc", "gpu", "llvm", "mpi", "nvgpu", "nvvm", "omp"}
    | {"ptr", "rocdl", "sparse_tensor", "spirv", "vcix", "wasmssa", "x86", "xegpu", "xevm"}
)
# Ops of other dialects that create addresses, or access memory beyond a buffer.
_NATIVE_OPS = frozenset({"memref.extract_aligned_pointer_as_index", "memref.reinterpret_cast", "memref.view"})
_FUNCTION = "func.func"
# Ops that use a symbol, with the attribute that names it.
_NAMED_BY = {"func.call": "callee", "func.constant": "value"}


def check_trusted(module: Any) -> None:
    """Rejects a module that contains native code.

    Args:
        module: the module as given by the user, before any lowering.

    Raises:
        RunError: the module contains native code; the diagnostics name each such operation.
    """
    found = native_code(module)
    if found:
        what = "the program contains native code, which has unrestricted access to this machine"
        raise RunError(f"{what}: --trust-native, or trust_native=True in Python, allows it", found)


def native_code(module: Any) -> tuple[Diagnostic, ...]:
    """Returns an error for each operation of a module that is native code."""
    ops = operations_where(module, _is_native)
    found = [diagnostic.at("error", f"'{op.name}' op is native code", op.location) for op in ops]
    declared = {
        op.operation.attributes["sym_name"].value
        for op in operations_where(module, lambda name: name == _FUNCTION)
        if not len(op.operation.regions[0].blocks)
    }
    named = [(op, op.attributes[_NAMED_BY[op.name]].value) for op in operations_where(module, _NAMED_BY.__contains__)]
    for op, name in named:
        if name in declared:
            message = f"'{op.name}' op refers to @{name}, which has no body: it would be a library function"
            found.append(diagnostic.at("error", message, op.location))
    return tuple(found)


def _is_native(name: str) -> bool:
    return name in _NATIVE_OPS or name.partition(".")[0] in _NATIVE_DIALECTS
