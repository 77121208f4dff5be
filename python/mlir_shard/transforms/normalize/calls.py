# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes on calls that copy a function for each call, import or inline calls, and order functions by calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.type_runs import length_attribute
from mlir_shard.host import ir
from mlir_shard.ir.editing import (
    attribute_columns,
    block_count,
    children,
    functions,
    inline_body,
    operations_named,
    operations_named_in_post_order,
    replace,
    terminator,
)
from mlir_shard.ir.operation_list import OperationList, capsules_of
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS, TooManyRuns
from mlir_shard.passes.analyses import held, held_operations
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, ModulePass, PassFailure, register
from mlir_shard.rules.registry import has_rule
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.call_graph import (
    CALL,
    ORIGINAL_NAME,
    CallGraph,
    FunctionCopies,
    call_graph,
    changed_call_graph,
    has_body,
    name_of,
    set_callee,
)
from mlir_shard.transforms.data_flow_edges import (
    COMPUTATION,
    add_known_edges,
    edge_of,
    result_shardings,
    set_result_shardings,
)
from mlir_shard.transforms.func_edges import FUNC_EDGE, sink_all_func_edges
from mlir_shard.transforms.shardings import Side, shardings_of, shardings_per_value


@register
class FlattenCallGraph(ModulePass):
    """Gives every call of a function except the first one its own copy of the function and of all functions it calls.

    A copy holds the name of the original in `sdy.original_func_name`. Functions that are only declared stay shared;
    recursive calls are rejected.
    """

    name = "sdy-flatten-call-graph"
    summary = "Copies functions until each has at most one call"
    needs = ("func.call",)

    def run(self, op: Any) -> bool | Changes:
        graph = call_graph(op)
        graph.reject_recursion()
        copies = FunctionCopies(op)
        called: set[str] = set()
        changed = []
        for name in graph.post_order:
            for call, symbol in zip(graph.calls[name], graph.called[name], strict=True):
                if symbol in called:
                    set_callee(call, copies.copy(symbol))
                    changed.append(call)
                else:
                    called.add(symbol)
        if not changed:
            return False
        functions = graph.functions | dict(zip(copies.calls, copies.made, strict=True))
        flat = CallGraph.between(functions, graph.calls | copies.calls)
        return Changes(copies.made, changed, analyses=changed_call_graph(flat))


EXECUTION_THREAD = "execution_thread"
# The attributes of a call that a named computation does not keep.
_CALL_ATTRIBUTES = ("callee", "arg_attrs", "res_attrs", "no_inline", sdy.SHARDING)


class CalledFunctions:
    """The replacement of calls by named computations; attributes that functions share are built once."""

    def __init__(self, functions: Mapping[str, Any], meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._functions = functions
        names = ("sym_name", ORIGINAL_NAME, "function_type", "arg_attrs", EXECUTION_THREAD)
        columns = attribute_columns(list(functions.values()), *names)
        self._attributes = dict(zip(functions, zip(*columns, strict=True), strict=True))
        self._in_shardings: dict[tuple[Any, Any], Any] = {}
        self._lengths: dict[Any, dict[str, Any]] = {}

    def put(self, name: str, body: Any, call: Any, out_shardings: Any) -> Any:
        """Replaces a call of a function by a computation with the body of `body`; returns the computation."""
        symbol, original, type_, _, thread = self._attributes[name]
        try:
            attributes = {"name": original or symbol, **self._lengths_of(type_)}
        except TooManyRuns as error:
            raise PassFailure(
                f"the call of @{name} cannot become a named computation: {error} in arguments or results; inline "
                "the call first with --shard-inline-calls",
                call,
            ) from error
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
        """Replaces the terminator of a computation with the body of a function by `sdy.return`."""
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


@register
class ImportFuncCalls(ModulePass):
    """Replaces each call by a named computation with the body of the function, and erases the function; further calls
    of it get copies of the body.

    The arguments keep the shardings of the function's arguments, the results those of the call. Calls of functions that
    are only declared stay. Recursive calls are rejected, and so are calls of functions with several blocks, and calls
    in whose arguments or results the type changes more than 1,023 times.
    """

    name = "sdy-import-func-calls"
    summary = "Converts calls to named computations"
    needs = ("func.call", FUNC_EDGE, COMPUTATION)

    add_data_flow_edges_on_named_computations: bool = option(True, "Add data-flow edges to named computations")

    def run(self, op: Any) -> bool | Changes:
        graph = call_graph(op)
        has_sunk = sink_all_func_edges(op)
        graph.reject_recursion()
        functions = CalledFunctions(graph.functions, sdy.meshes(op))
        imported: dict[str, Any] = {}
        made: list[Any] = []
        has_others = held(op).has_any((COMPUTATION,))
        (column,) = attribute_columns([call for name in graph.post_order for call in graph.calls[name]], sdy.SHARDING)
        shardings = iter(column)
        for name in graph.post_order:
            for call, called in zip(graph.calls[name], graph.called[name], strict=True):
                sharding = next(shardings)
                if called in imported:
                    # Computations in it are copied too.
                    has_others = True
                    copied = imported[called].clone(ip=ir.InsertionPoint(call))
                    made.append(functions.put(called, copied, call, sharding))
                    copied.erase()
                elif has_body(graph.functions[called]):
                    imported[called] = functions.put(called, _of_one_block(graph.functions[called]), call, sharding)
                    functions.end(called, imported[called])
                    made.append(imported[called])
        for name in imported:
            graph.functions[name].erase()
        capsules = list(capsules_of(made))
        if self.add_data_flow_edges_on_named_computations:
            capsules += add_known_edges(operations_named(op, COMPUTATION) if has_others else made).capsules
        if has_sunk:
            return True
        without = () if len(made) < len(graph.all_calls) or children(op, "builtin.module") else (CALL,)
        return Changes(OperationList(capsules), without=without) if capsules else False


def _of_one_block(function: Any) -> Any:
    count = block_count(function)
    if count != 1:
        raise PassFailure(
            f"function @{name_of(function)} has {count} blocks, but the body of a named computation must have one: "
            "convert control flow to structured ops first",
            function,
        )
    return function


@register
class PreOrderFuncs(ModulePass):
    """Moves the functions to the end of the module, each after its callers. Declarations stay where they are."""

    name = "sdy-pre-order-funcs"
    summary = "Orders functions so that callers precede their callees"

    def run(self, op: Any) -> bool:
        graph = call_graph(op)
        order = graph.post_order[::-1]
        block = op.regions[0].blocks[0]
        if order == tuple(functions(op)) and _are_last(block, len(order)):
            return False
        end = ir.InsertionPoint(block)
        for name in order:
            function = graph.functions[name]
            function.detach_from_parent()
            end.insert(function)
        return True


def _are_last(block: Any, count: int) -> bool:
    """Returns whether the last `count` operations of a module are functions."""
    names = [one.operation.name for one in block.operations]
    return all(name == "func.func" for name in names[len(names) - count :])


@register
class PropagateShardingFromFuncToCall(ModulePass):
    """Gives each call without result shardings the result shardings of the function that it calls, if there are any."""

    name = "sdy-propagate-sharding-from-func-to-call"
    summary = "Copies the result shardings of functions to calls that have none"
    needs = ("func.call",)

    def run(self, op: Any) -> bool:
        graph, meshes = call_graph(op), sdy.meshes(op)
        found, calls = graph.functions, graph.all_calls
        symbols, known = attribute_columns(calls, "callee", sdy.SHARDING)
        of_function: dict[str, TensorShardingPerValue | None] = {}
        is_changed = False
        for call, symbol, given in zip(calls, symbols, known, strict=True):
            name = symbol.value
            if given is not None or name not in found:
                continue
            if name not in of_function:
                of_function[name] = shardings_per_value(found[name], Side.RESULTS, meshes)
            shardings = of_function[name]
            if shardings is not None:
                call.attributes[sdy.SHARDING] = sdy.attribute(shardings, op.context)
                is_changed = True
        return is_changed


NO_INLINE = "no_inline"
_COMPOSITE = "stablehlo.composite"
Shardings = Sequence[TensorSharding | None]


@register
class InlineCalls(ModulePass):
    """Inlines calls of functions, whatever operations they contain, and named computations without data-flow edges.

    A StableHLO composite without a sharding rule of its own is treated as a call of its decomposition. Shardings of
    the function's arguments and results become sharding constraints. If a call or its function has the attribute
    `no_inline`, the call becomes a named computation, which `sdy-export-named-computations` turns into a call again.
    Recursive calls, and calls of functions that are only declared or have several blocks, stay: their operands are
    constrained to the shardings of the function's arguments, and results without a sharding get the function's.
    """

    name = "shard-inline-calls"
    summary = "Inlines calls, including calls of functions that contain sdy operations"
    needs = (COMPUTATION, "func.call", _COMPOSITE)

    def run(self, op: Any) -> bool | Changes:
        computations = operations_named_in_post_order(op, COMPUTATION) if held(op).has_any((COMPUTATION,)) else []
        for computation in computations:
            if not _has_edges(computation):
                _inline(computation, computation, _in_shardings(computation), result_shardings(computation))
        has_more = bool(computations) | _call_decompositions(op) | sink_all_func_edges(op)
        graph = CallGraph.of(op)
        calls = _Calls(op, graph)
        order = graph.post_order
        graph.reject_doubling(order)
        # A function comes after those it calls, except for recursive calls.
        waiting, inlined = set(order), set()
        changed: list[Any] = []  # Capsules.
        for name in order:
            is_recursive = not waiting.isdisjoint(graph.called[name])
            for call, called in zip(graph.calls[name], graph.called[name], strict=True):
                found = calls.replace(call, called, can_inline=called in inlined)
                has_more |= found is None
                changed += found or ()
            waiting.remove(name)
            if not is_recursive and block_count(graph.functions[name]) == 1:
                inlined.add(name)
        if has_more:
            return True
        return Changes(OperationList(changed)) if any(graph.calls.values()) else False


_DECOMPOSITION = "decomposition"


def _call_decompositions(module: Any) -> bool:
    """Replaces composites without a sharding rule by calls of their decompositions; returns whether there are any."""
    called = False
    for composite in held_operations(module, _COMPOSITE):
        if not len(composite.regions) and sdy.SHARDING_RULE not in composite.attributes and not has_rule(composite):
            added = {"callee": composite.attributes[_DECOMPOSITION]}
            replace(composite, "func.call", added, dropped=("name", "composite_attributes", _DECOMPOSITION, "version"))
            called = True
    return called


class _Calls:
    """The replacement of the calls of a module; the shardings of a function are read once."""

    def __init__(self, module: Any, graph: CallGraph) -> None:
        self._meshes = sdy.meshes(module)
        self._functions = graph.functions
        self._called = CalledFunctions(graph.functions, self._meshes)
        self._arguments_of = cache(lambda name: shardings_of(graph.functions[name], Side.ARGUMENTS))
        self._results_of = cache(lambda name: shardings_per_value(graph.functions[name], Side.RESULTS, self._meshes))

    def replace(self, call: Any, name: str, *, can_inline: bool) -> list[Any] | None:
        """Inlines a call of the function `name`; one that cannot be inlined is constrained or becomes a computation.

        Returns the capsules of the changed operations; None if the call was not inlined.
        """
        function = self._functions.get(name)
        if function is None:
            return None
        arguments, results = self._arguments_of(name), result_shardings(call)
        if not results and (per_value := self._results_of(name)) is not None:
            results = per_value.shardings
        if not can_inline:
            _constrain_operands(call, arguments)
            if results is not None:
                set_result_shardings(call, results)
        elif NO_INLINE in call.attributes or NO_INLINE in function.attributes:
            if results is not None:
                set_result_shardings(call, results)
            self._make_computation(call, name, function)
        else:
            return _inline(call, function, arguments, results)
        return None

    def _make_computation(self, call: Any, name: str, function: Any) -> None:
        copied = function.clone(ip=ir.InsertionPoint(call))
        shardings = call.attributes.get(sdy.SHARDING)
        computation = self._called.put(name, copied, call, shardings)
        self._called.end(name, computation)
        computation.attributes[NO_INLINE] = ir.UnitAttr.get(computation.context)
        copied.erase()


def _inline(call: Any, function: Any, arguments: Shardings, results: Shardings | None) -> list[Any]:
    """Inlines a call; returns the capsules of new operations, and of the users of its results that are not calls."""
    constraints = _constrain_operands(call, arguments)
    after = ir.InsertionPoint.after(call)
    for result, sharding in zip(call.results, results or (), strict=results is not None):
        if sharding is not None:
            constraint = sdy.ShardingConstraintOp(result, sharding, loc=call.location, ip=after)
            result.replace_all_uses_except(constraint.result, constraint.operation)
            constraints.append(constraint.operation)
    return [*capsules_of(constraints), *inline_body(call, function).capsules]


def _constrain_operands(call: Any, shardings: Shardings) -> list[Any]:
    constraints = []
    for index, sharding in enumerate(shardings):
        if sharding is not None:
            operand = call.operands[index]
            constraint = sdy.ShardingConstraintOp(operand, sharding, loc=call.location, ip=ir.InsertionPoint(call))
            call.operands[index] = constraint.result
            constraints.append(constraint.operation)
    return constraints


def _in_shardings(computation: Any) -> Shardings:
    if "in_shardings" not in computation.attributes:
        return ()
    shardings: tuple[TensorSharding, ...] = computation.attributes["in_shardings"].value.shardings
    return shardings


def _has_edges(computation: Any) -> bool:
    values = (*computation.regions[0].blocks[0].arguments, *computation.results)
    return any(edge_of(value) is not None for value in values)
