# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named computations become calls of functions again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ods.type_runs import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.call_graph import ORIGINAL_NAME
from mlir_shard.transforms.data_flow_edges import (
    argument_shardings,
    edge_of,
    result_shardings,
    set_result_shardings,
    shardings_of_edges,
)
from mlir_shard.transforms.function_shardings import Side, set_shardings
from mlir_shard.transforms.operations import operations_named_in_post_order

_func = dialect("func")

EXECUTION_THREAD = "execution_thread"
_OWN_ATTRIBUTES = ("name", "in_shardings", "out_shardings", EXECUTION_THREAD, OPERAND_LENGTHS, RESULT_LENGTHS)


@register
class ExportNamedComputations(Pass):
    """Makes of each named computation a private function of that name, and a call of it.

    The function's arguments and the results of the call get the shardings of the computation, or those of its
    data-flow edges, which go. A name that is taken gets a number. The function says in `sdy.original_func_name` what
    the computation was called.
    """

    name = "sdy-export-named-computations"
    anchor = "builtin.module"
    summary = "Turns named computations into functions and calls"

    def run(self, op: Any) -> None:
        symbols = ir.SymbolTable(op)
        end = ir.InsertionPoint(op.regions[0].blocks[0])
        for computation in operations_named_in_post_order(op, "sdy.named_computation"):
            _export(computation, symbols, end)


def _export(computation: Any, symbols: Any, end: Any) -> None:
    body = computation.regions[0].blocks[0]
    in_shardings = shardings_of_edges(body.arguments) or argument_shardings(computation)
    out_shardings = shardings_of_edges(computation.results) or result_shardings(computation)
    _remove_edges(body.arguments)
    _remove_edges(computation.results)
    function = _function(computation, body, end)
    if in_shardings is not None:
        set_shardings(function, Side.ARGUMENTS, in_shardings)
    name = symbols.insert(function).value
    types = [result.type for result in computation.results]
    point = ir.InsertionPoint(computation)
    call = _func.CallOp(types, name, list(computation.operands), loc=computation.location, ip=point).operation
    for attribute in computation.attributes:
        if attribute not in _OWN_ATTRIBUTES:
            call.attributes[attribute] = computation.attributes[attribute]
    if out_shardings is not None:
        set_result_shardings(call, out_shardings)
    for old, new in zip(computation.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    computation.erase()


def _function(computation: Any, body: Any, end: Any) -> Any:
    """The computation as a private function at the end of the module; takes its body away."""
    types = ([argument.type for argument in body.arguments], [result.type for result in computation.results])
    name = computation.attributes["name"]
    function = _func.FuncOp(name.value, types, visibility="private", loc=computation.location, ip=end).operation
    function.attributes[ORIGINAL_NAME] = name
    if EXECUTION_THREAD in computation.attributes:
        function.attributes[EXECUTION_THREAD] = computation.attributes[EXECUTION_THREAD]
    body.append_to(function.regions[0])
    terminator = list(body.operations)[-1].operation
    _func.ReturnOp(list(terminator.operands), loc=terminator.location, ip=ir.InsertionPoint(terminator))
    terminator.erase()
    return function


def _remove_edges(owners: Iterable[Any]) -> None:
    for owner in owners:
        edge = edge_of(owner)
        if edge is not None:
            edge.results[0].replace_all_uses_with(owner)
            edge.erase()
