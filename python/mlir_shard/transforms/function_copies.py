# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of functions, each with copies of its own of what it calls."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.transforms.call_graph import ORIGINAL_NAME, callee, functions, has_body, original_name, set_callee
from mlir_shard.transforms.operations import operations_named


class FunctionCopies:
    """Copies functions to the end of a module; no function may call itself, directly or through others."""

    def __init__(self, module: Any) -> None:
        self._end = ir.InsertionPoint(module.regions[0].blocks[0])
        self._symbols = ir.SymbolTable(module)
        self._functions = functions(module)

    def copy(self, name: str) -> str:
        """Copies the function of that symbol, where it is defined here; returns the symbol of the copy."""
        function = self._functions.get(name)
        if function is None or not has_body(function):
            return name
        called = [self.copy(callee(call)) for call in operations_named(function, "func.call")]
        copied = function.clone(ip=self._end)
        copied.attributes[ORIGINAL_NAME] = ir.StringAttr.get(original_name(function), function.context)
        for call, symbol_of_copy in zip(operations_named(copied, "func.call"), called, strict=True):
            set_callee(call, symbol_of_copy)
        symbol: str = self._symbols.insert(copied).value
        self._functions[symbol] = copied
        return symbol
