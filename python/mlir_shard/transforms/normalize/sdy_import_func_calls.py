# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls as named computations: the function in place, with its name kept, so that shardings go through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.asm.editor import attribute_columns, block_count, replace, terminator
from mlir_shard.dialects import sdy
from mlir_shard.dialects.type_runs import length_attribute
from mlir_shard.host import ir
from mlir_shard.ods.type_runs import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.call_graph import ORIGINAL_NAME, CallGraph, has_body, name_of
from mlir_shard.transforms.computation_edges import COMPUTATION, add_edges
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

    def run(self, op: Any) -> bool:
        graph = CallGraph.of(op)
        graph.reject_recursion()
        functions = _Functions(graph.functions, sdy.meshes(op))
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


class _Functions:
    """Puts named computations in the place of calls; what functions have in common is made once."""

    def __init__(self, functions: Mapping[str, Any], meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._functions = functions
        names = ("sym_name", ORIGINAL_NAME, "function_type", "arg_attrs", EXECUTION_THREAD)
        columns = attribute_columns(list(functions.values()), *names)
        self._attributes = dict(zip(functions, zip(*columns, strict=True), strict=True))
        self._in_shardings: dict[tuple[Any, Any], Any] = {}
        self._lengths: dict[Any, dict[str, Any]] = {}

    def put(self, name: str, body: Any, call: Any, out_shardings: Any) -> Any:
        """Makes a call of a function a computation with the body of `body`, and gives that."""
        symbol, original, type_, _, thread = self._attributes[name]
        attributes = {"name": original or symbol, **self._lengths_of(type_)}
        in_shardings = self._in_shardings_of(name)
        if in_shardings is not None:
            attributes["in_shardings"] = in_shardings
        if out_shardings is not None:
            attributes["out_shardings"] = out_shardings
        if thread is None:
            return replace(call, COMPUTATION, attributes, dropped=_CALL_ATTRIBUTES, body=body)
        attributes[EXECUTION_THREAD] = thread
        return replace(call, COMPUTATION, attributes, dropped=(*_CALL_ATTRIBUTES, EXECUTION_THREAD), body=body)

    def end(self, name: str, computation: Any) -> None:
        """Has a computation with the body of a function return what the function did."""
        lengths = self._lengths_of(self._attributes[name][2])
        replace(terminator(computation), "sdy.return", {OPERAND_LENGTHS: lengths[RESULT_LENGTHS]})

    def _in_shardings_of(self, name: str) -> Any:
        _, _, type_, dictionaries, _ = self._attributes[name]
        key = (type_, dictionaries)
        if key not in self._in_shardings:
            function = self._functions[name]
            shardings = shardings_per_value(function, Side.ARGUMENTS, self._meshes)
            self._in_shardings[key] = None if shardings is None else sdy.attribute(shardings, function.context)
        return self._in_shardings[key]

    def _lengths_of(self, type_: Any) -> dict[str, Any]:
        if type_ not in self._lengths:
            self._lengths[type_] = {
                OPERAND_LENGTHS: length_attribute(type_.value.inputs, type_.context),
                RESULT_LENGTHS: length_attribute(type_.value.results, type_.context),
            }
        return self._lengths[type_]


def _of_one_block(function: Any) -> Any:
    count = block_count(function)
    if count != 1:
        raise PassFailure(
            f"function @{name_of(function)} has {count} blocks, and the body of a named computation has one: "
            "lift control flow to structured ops first",
            function,
        )
    return function
