# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of a program's functions while it is lowered: a function `tanh` must not take the calls of the C library's."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.runtime.launch.jit import MESSAGES_INTERFACE

# No name in C has a dot.
_SUFFIX = ".local"
# What the lowering to LLVM names a function's C interface after.
_C_INTERFACE = "_mlir_ciface_"


def set_apart(module: Any, entry: str) -> str:
    """Renames the functions that a module defines, in place, to names that no library has, and returns the entry's."""
    for op in list(module.body.operations):
        if op.operation.name == "func.func" and len(op.operation.regions[0].blocks):
            name = op.operation.attributes["sym_name"].value
            _rename(module, op.operation, name + _SUFFIX)
    return entry + _SUFFIX


def restore(module: Any, entry: str) -> None:
    """Gives the C interface of a lowered module's entry, renamed by `set_apart`, the name that callers look up.

    Other functions become internal: LLVM's execution engine makes each that is not callable in one more way.
    """
    interface = _C_INTERFACE + entry
    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    for op in list(module.body.operations):
        if op.operation.name != "llvm.func" or not len(op.operation.regions[0].blocks):
            continue
        name = op.operation.attributes["sym_name"].value
        if name == interface:
            _rename(module, op.operation, interface.removesuffix(_SUFFIX))
        elif name != MESSAGES_INTERFACE:
            op.operation.attributes["linkage"] = internal


def _rename(module: Any, function: Any, name: str) -> None:
    ir.SymbolTable.replace_all_symbol_uses(function.attributes["sym_name"].value, name, module.operation)
    ir.SymbolTable.set_symbol_name(function, name)
