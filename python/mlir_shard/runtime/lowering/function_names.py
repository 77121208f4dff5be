# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Renames a program's functions during lowering: a function `tanh` must not replace that of the C library."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.runtime.launch.jit import MESSAGES_INTERFACE

# Names in C cannot contain a dot.
_SUFFIX = ".local"
# The prefix with which the lowering to LLVM names a function's C interface.
_C_INTERFACE = "_mlir_ciface_"


def set_apart(module: Any, entry: str) -> str:
    """Renames the functions that a module defines to names that no library has; returns the new name of the entry."""
    for op in list(module.body.operations):
        if op.operation.name == "func.func" and len(op.operation.regions[0].blocks):
            name = op.operation.attributes["sym_name"].value
            _rename(module, op.operation, name + _SUFFIX)
    return entry + _SUFFIX


def restore(module: Any, entry: str) -> None:
    """Restores the name of the C interface of a lowered module's entry, which `set_apart` has renamed.

    Other functions become internal, because LLVM's execution engine adds a wrapper to each external function.
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
