# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions in the order in which propagation, going down the text, should come to them."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.call_graph import CallGraph


@register
class PreOrderFuncs(Pass):
    """Moves the functions to the end of the module, each behind those that call it. Declarations stay."""

    name = "sdy-pre-order-funcs"
    anchor = "builtin.module"
    summary = "Orders functions so that callers come before what they call"

    def run(self, op: Any) -> None:
        graph = CallGraph.of(op)
        end = ir.InsertionPoint(op.regions[0].blocks[0])
        for name in reversed(graph.post_order()):
            function = graph.functions[name]
            function.detach_from_parent()
            end.insert(function)
