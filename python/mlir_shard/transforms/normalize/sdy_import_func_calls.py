# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls as named computations: the function in place, with its name kept, so that shardings go through it."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.call_graph import CallGraph, callee, has_body, name_of, original_name
from mlir_shard.transforms.data_flow_edges import add_edges
from mlir_shard.transforms.function_shardings import Side, shardings_per_value
from mlir_shard.transforms.operations import operations_named

EXECUTION_THREAD = "execution_thread"
# What a call says about calling, rather than about what it computes.
_CALL_ATTRIBUTES = ("callee", "arg_attrs", "res_attrs", "no_inline", sdy.SHARDING)


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

    def run(self, op: Any) -> None:
        graph = CallGraph.of(op)
        graph.reject_recursion()
        meshes = sdy.meshes(op)
        imported: dict[str, Any] = {}
        for name in graph.post_order():
            for call in graph.calls[name]:
                function = graph.functions[callee(call)]
                if has_body(function) or callee(call) in imported:
                    _import(call, function, shardings_per_value(function, Side.ARGUMENTS, meshes), imported)
        for name in imported:
            graph.functions[name].erase()
        if self.add_data_flow_edges_on_named_computations:
            for computation in operations_named(op, "sdy.named_computation"):
                add_edges(list(computation.regions[0].blocks[0].arguments))
                add_edges(list(computation.results))


def _import(call: Any, function: Any, in_shardings: Any, imported: dict[str, Any]) -> None:
    attributes = call.attributes
    computation = sdy.NamedComputationOp(
        [result.type for result in call.results],
        original_name(function),
        list(call.operands),
        in_shardings=in_shardings,
        out_shardings=attributes.get(sdy.SHARDING),
        loc=call.location,
        ip=ir.InsertionPoint(call),
    ).operation
    for name in attributes:
        if name not in _CALL_ATTRIBUTES:
            computation.attributes[name] = attributes[name]
    if EXECUTION_THREAD in function.attributes:
        computation.attributes[EXECUTION_THREAD] = function.attributes[EXECUTION_THREAD]
    first = imported.get(callee(call))
    if first is None:
        _move_body(function, computation)
        imported[callee(call)] = computation
    else:
        copied = first.clone(ip=ir.InsertionPoint(call))
        copied.regions[0].blocks[0].append_to(computation.regions[0])
        copied.erase()
    for old, new in zip(call.results, computation.results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()


def _move_body(function: Any, computation: Any) -> None:
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise PassFailure(
            f"function @{name_of(function)} has {len(blocks)} blocks, and the body of a named computation has one: "
            "lift control flow to structured ops first",
            function,
        )
    blocks[0].append_to(computation.regions[0])
    terminator = list(blocks[0].operations)[-1].operation
    sdy.ReturnOp(list(terminator.operands), loc=terminator.location, ip=ir.InsertionPoint(terminator))
    terminator.erase()
