# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function for every call, so that each call can have shardings of its own."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.call_graph import ORIGINAL_NAME, CallGraph, callee, has_body, original_name, set_callee
from mlir_shard.transforms.operations import operations_named


@register
class FlattenCallGraph(Pass):
    """Gives every call but the first of a function a copy of the function, and of all that it calls.

    A copy says in `sdy.original_func_name` what it is a copy of. Functions that are only declared stay shared;
    recursive calls are refused.
    """

    name = "sdy-flatten-call-graph"
    anchor = "builtin.module"
    summary = "Copies functions until each has at most one call"

    def run(self, op: Any) -> None:
        graph = CallGraph.of(op)
        graph.reject_recursion()
        copies = _Copies(op, graph)
        called: set[str] = set()
        for name in graph.post_order():
            for call in graph.calls[name]:
                if callee(call) in called:
                    set_callee(call, copies.copy(callee(call)))
                else:
                    called.add(callee(call))


class _Copies:
    """Copies of functions in a module, each with copies of its own of what it calls."""

    def __init__(self, module: Any, graph: CallGraph) -> None:
        self._end = ir.InsertionPoint(module.regions[0].blocks[0])
        self._symbols = ir.SymbolTable(module)
        self._functions = dict(graph.functions)
        self._calls = dict(graph.calls)

    def copy(self, name: str) -> str:
        """Copies the function of that symbol; returns the symbol of the copy."""
        function = self._functions[name]
        if not has_body(function):
            return name
        callees = [self.copy(callee(call)) for call in self._calls[name]]
        copied = function.clone(ip=self._end)
        copied.attributes[ORIGINAL_NAME] = ir.StringAttr.get(original_name(function), function.context)
        new: str = self._symbols.insert(copied).value
        self._functions[new], self._calls[new] = copied, operations_named(copied, "func.call")
        for call, called in zip(self._calls[new], callees, strict=True):
            set_callee(call, called)
        return new
