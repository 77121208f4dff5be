# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function for every call, so that each call can have shardings of its own."""

from __future__ import annotations

from typing import Any

from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.call_graph import CallGraph, set_callee
from mlir_shard.transforms.function_copies import FunctionCopies


@register
class FlattenCallGraph(Pass):
    """Gives every call but the first of a function a copy of the function, and of all that it calls.

    A copy says in `sdy.original_func_name` what it is a copy of. Functions that are only declared stay shared;
    recursive calls are refused.
    """

    name = "sdy-flatten-call-graph"
    anchor = "builtin.module"
    summary = "Copies functions until each has at most one call"

    def run(self, op: Any) -> bool:
        graph = CallGraph.of(op)
        graph.reject_recursion()
        copies = FunctionCopies(op)
        called: set[str] = set()
        for name in graph.post_order():
            for call, symbol in zip(graph.calls[name], graph.called[name], strict=True):
                if symbol in called:
                    set_callee(call, copies.copy(symbol))
                else:
                    called.add(symbol)
        return bool(called)
