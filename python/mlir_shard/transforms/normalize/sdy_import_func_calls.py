# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls as named computations: the function in place, with its name kept, so that shardings go through it."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.editor import attribute_columns, block_count
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.call_graph import CallGraph, has_body, name_of
from mlir_shard.transforms.called_functions import CalledFunctions
from mlir_shard.transforms.computation_edges import COMPUTATION, add_edges
from mlir_shard.transforms.operations import operations_named


@register
class ImportFuncCalls(Pass):
    """Makes a named computation of each call, with the body of the function, which goes; further calls get copies.

    Arguments keep the shardings of the function's arguments, results those of the call. Calls of functions that are
    only declared stay; recursive calls, and functions of several blocks, are refused.
    """

    name = "sdy-import-func-calls"
    anchor = "builtin.module"
    summary = "Turns calls into named computations"

    add_data_flow_edges_on_named_computations: bool = option(True, "Add data-flow edges to named computations")

    def run(self, op: Any) -> bool:
        graph = CallGraph.of(op)
        graph.reject_recursion()
        functions = CalledFunctions(graph.functions, sdy.meshes(op))
        imported: dict[str, Any] = {}
        for name in graph.post_order():
            (shardings,) = attribute_columns(graph.calls[name], sdy.SHARDING)
            for call, called, sharding in zip(graph.calls[name], graph.called[name], shardings, strict=True):
                if called in imported:
                    copied = imported[called].clone(ip=ir.InsertionPoint(call))
                    functions.put(called, copied, call, sharding)
                    copied.erase()
                elif has_body(graph.functions[called]):
                    imported[called] = functions.put(called, _of_one_block(graph.functions[called]), call, sharding)
                    functions.end(called, imported[called])
        for name in imported:
            graph.functions[name].erase()
        if self.add_data_flow_edges_on_named_computations:
            add_edges(operations_named(op, COMPUTATION))
            return True
        return bool(imported)


def _of_one_block(function: Any) -> Any:
    count = block_count(function)
    if count != 1:
        raise PassFailure(
            f"function @{name_of(function)} has {count} blocks, and the body of a named computation has one: "
            "lift control flow to structured ops first",
            function,
        )
    return function
