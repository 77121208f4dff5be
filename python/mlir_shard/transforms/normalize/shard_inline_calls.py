# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions in the place of their calls, so that nothing stands between what is sharded inside and outside of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.asm.editor import block_count, inline_body
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.call_graph import CallGraph
from mlir_shard.transforms.called_functions import CalledFunctions
from mlir_shard.transforms.computation_edges import COMPUTATION
from mlir_shard.transforms.data_flow_edges import edge_of, result_shardings, set_result_shardings
from mlir_shard.transforms.function_shardings import Side, shardings_of, shardings_per_value
from mlir_shard.transforms.operations import operations_named_in_post_order

NO_INLINE = "no_inline"

Shardings = Sequence[TensorSharding | None]


@register
class InlineCalls(Pass):
    """Inlines calls of functions, whatever is in these, and named computations without data-flow edges.

    Shardings of the function's arguments and of the results become sharding constraints. A call or function that says
    `no_inline` becomes a named computation, for `sdy-export-named-computations` to make a call of again. Recursive
    calls, and those of functions that are only declared or have several blocks, stay: their operands are constrained to
    the shardings that the function gives its arguments, and their results have those of its results.
    """

    name = "shard-inline-calls"
    anchor = "builtin.module"
    summary = "Inlines calls, those of functions with sdy's operations too"

    def run(self, op: Any) -> bool:
        computations = operations_named_in_post_order(op, COMPUTATION)
        for computation in computations:
            if not _has_edges(computation):
                _inline(computation, computation, _in_shardings(computation), result_shardings(computation))
        graph = CallGraph.of(op)
        calls = _Calls(op, graph)
        order = graph.post_order()
        # A function comes after those it calls, but for one on the way back to itself.
        waiting, inlined = set(order), set()
        for name in order:
            is_recursive = not waiting.isdisjoint(graph.called[name])
            for call, called in zip(graph.calls[name], graph.called[name], strict=True):
                calls.replace(call, called, can_inline=called in inlined)
            waiting.remove(name)
            if not is_recursive and block_count(graph.functions[name]) == 1:
                inlined.add(name)
        return bool(computations) or any(graph.calls.values())


class _Calls:
    """Replaces the calls of a module; what functions have in common is found once."""

    def __init__(self, module: Any, graph: CallGraph) -> None:
        self._meshes = sdy.meshes(module)
        self._functions = graph.functions
        self._called = CalledFunctions(graph.functions, self._meshes)
        self._arguments: dict[str, Shardings] = {}
        self._results: dict[str, tuple[TensorSharding, ...] | None] = {}

    def replace(self, call: Any, name: str, *, can_inline: bool) -> None:
        """Inlines a call of the function `name`, or makes of it what it has to be where it cannot be inlined."""
        function = self._functions.get(name)
        if function is None:
            return
        arguments, results = self._arguments_of(name, function), result_shardings(call) or self._results_of(name)
        if not can_inline:
            _constrain_operands(call, arguments)
            if results is not None:
                set_result_shardings(call, results)
        elif NO_INLINE in call.attributes or NO_INLINE in function.attributes:
            if results is not None:
                set_result_shardings(call, results)
            self._make_computation(call, name, function)
        else:
            _inline(call, function, arguments, results)

    def _make_computation(self, call: Any, name: str, function: Any) -> None:
        copied = function.clone(ip=ir.InsertionPoint(call))
        shardings = call.attributes.get(sdy.SHARDING)
        computation = self._called.put(name, copied, call, shardings)
        self._called.end(name, computation)
        computation.attributes[NO_INLINE] = ir.UnitAttr.get(computation.context)
        copied.erase()

    def _arguments_of(self, name: str, function: Any) -> Shardings:
        if name not in self._arguments:
            self._arguments[name] = shardings_of(function, Side.ARGUMENTS)
        return self._arguments[name]

    def _results_of(self, name: str) -> tuple[TensorSharding, ...] | None:
        if name not in self._results:
            shardings = shardings_per_value(self._functions[name], Side.RESULTS, self._meshes)
            self._results[name] = None if shardings is None else shardings.shardings
        return self._results[name]


def _inline(call: Any, function: Any, arguments: Shardings, results: Shardings | None) -> None:
    _constrain_operands(call, arguments)
    after = ir.InsertionPoint.after(call)
    for result, sharding in zip(call.results, results or (), strict=results is not None):
        if sharding is not None:
            constraint = sdy.ShardingConstraintOp(result, sharding, loc=call.location, ip=after)
            result.replace_all_uses_except(constraint.result, constraint.operation)
    inline_body(call, function)


def _constrain_operands(call: Any, shardings: Shardings) -> None:
    for index, sharding in enumerate(shardings):
        if sharding is not None:
            operand = call.operands[index]
            constraint = sdy.ShardingConstraintOp(operand, sharding, loc=call.location, ip=ir.InsertionPoint(call))
            call.operands[index] = constraint.result


def _in_shardings(computation: Any) -> Shardings:
    if "in_shardings" not in computation.attributes:
        return ()
    shardings: tuple[TensorSharding, ...] = computation.attributes["in_shardings"].value.shardings
    return shardings


def _has_edges(computation: Any) -> bool:
    values = (*computation.regions[0].blocks[0].arguments, *computation.results)
    return any(edge_of(value) is not None for value in values)
