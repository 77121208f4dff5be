# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled program calls has to be there: known before it is started, and said where the program says it."""

from __future__ import annotations

import ctypes
from typing import Any

from mlir_shard.host import ir
from mlir_shard.passes import diagnostic
from mlir_shard.runtime.error import RunError

_FUNCTION, _CALL = "llvm.func", "llvm.call"
# The library of MPI is loaded by each rank; intrinsics are none of a library's.
_ELSEWHERE = ("MPI_", "llvm.")


def check(module: Any) -> None:
    """RunError names the calls of a module in the LLVM dialect of functions that no library of this process has."""
    process = ctypes.CDLL(None)
    missing = {
        op.operation.attributes["sym_name"].value
        for op in module.body.operations
        if op.operation.name == _FUNCTION and not len(op.operation.regions[0].blocks)
    }
    missing = {name for name in missing if not name.startswith(_ELSEWHERE) and not hasattr(process, name)}
    calls: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == _CALL and "callee" in op.attributes and op.attributes["callee"].value in missing:
            calls.append(op)
        return ir.WalkResult.ADVANCE

    if missing:
        module.operation.walk(visit)
    if calls:
        messages = [
            diagnostic.at(
                "error", f"this calls '{op.attributes['callee'].value}', which no library here has", op.location
            )
            for op in calls
        ]
        raise RunError("the program cannot be run on this machine", messages)
