# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that restore calls: named computations become calls, and calls of equal copies share one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.ir.editing import (
    append,
    attribute_columns,
    function_type,
    operations_named_in_post_order,
    replace,
    terminator,
)
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.passes.analyses import held
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, ModulePass, register
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.call_graph import (
    ORIGINAL_NAME,
    CallGraph,
    call_graph,
    changed_call_graph,
    set_callee,
)
from mlir_shard.transforms.data_flow_edges import COMPUTATION, EDGE, take_shardings
from mlir_shard.transforms.shardings import Side, shardings_per_value

EXECUTION_THREAD = "execution_thread"
_OWN_ATTRIBUTES = ("name", "in_shardings", "out_shardings", EXECUTION_THREAD, OPERAND_LENGTHS, RESULT_LENGTHS)


@register
class ExportNamedComputations(ModulePass):
    """Replaces each named computation by a call of a new private function of that name.

    The function's arguments and the results of the call get the shardings of the computation, or those of its data-flow
    edges, which are removed; with `shard-function-results` the function's results get the shardings of the call's
    results. A name that is taken gets a number. The function's `sdy.original_func_name` is the name of the computation.
    """

    name = "sdy-export-named-computations"
    summary = "Converts named computations to functions and calls"
    needs = (COMPUTATION,)

    shard_function_results: bool = option(False, "Copy the shardings of call results to function results")

    def run(self, op: Any) -> bool | Changes:
        computations = operations_named_in_post_order(op, COMPUTATION)
        export = _Export(op)
        made = []
        names, threads = attribute_columns(computations, "name", EXECUTION_THREAD)
        shardings = take_shardings(computations)
        for computation, name, thread, (given, results) in zip(computations, names, threads, shardings, strict=True):
            attributes = {} if thread is None else {EXECUTION_THREAD: thread}
            if self.shard_function_results and results:
                attributes[Side.RESULTS.value] = export.dictionaries_of(results)
            function, symbol = export.function(computation, name, given, attributes)
            made += [function, export.call(computation, symbol, results)]
        # All data-flow edges are gone if no other operation may have one.
        others = any(name != COMPUTATION and has_edges(name) for name in held(op).operations)
        without = (COMPUTATION,) if others else (COMPUTATION, EDGE)
        return Changes(made, without=without) if made else False


class _Export:
    """The functions and calls made in a module; attributes that several of them share are made once."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._symbols = ir.SymbolTable(module)
        self._private = ir.StringAttr.get("private", module.context)
        self._dictionaries: dict[tuple[TensorSharding, ...], Any] = {}
        self._attributes: dict[tuple[TensorSharding, ...], Any] = {}

    def function(
        self, computation: Any, name: Any, shardings: tuple[TensorSharding, ...] | None, attributes: dict[str, Any]
    ) -> tuple[Any, str]:
        """Makes a private function at the end of the module with a computation's body; returns it and its symbol."""
        attributes["sym_name"] = attributes[ORIGINAL_NAME] = name
        attributes["sym_visibility"] = self._private
        attributes["function_type"] = function_type(computation)
        if shardings:
            attributes[Side.ARGUMENTS.value] = self.dictionaries_of(shardings)
        function = append(self._module, "func.func", attributes, computation)
        replace(terminator(function), "func.return", {})
        symbol: str = self._symbols.insert(function).value
        return function, symbol

    def call(self, computation: Any, symbol: str, shardings: tuple[TensorSharding, ...] | None) -> Any:
        """Replaces a computation by a call of a function, whose results get these shardings; returns the call."""
        added = {"callee": ir.FlatSymbolRefAttr.get(symbol, self._module.context)}
        if shardings is None:
            return replace(computation, "func.call", added, dropped=_OWN_ATTRIBUTES)
        if shardings not in self._attributes:
            self._attributes[shardings] = sdy.attribute(TensorShardingPerValue(shardings), self._module.context)
        added[sdy.SHARDING] = self._attributes[shardings]
        return replace(computation, "func.call", added, dropped=(*_OWN_ATTRIBUTES, sdy.SHARDING))

    def dictionaries_of(self, shardings: tuple[TensorSharding, ...]) -> Any:
        """Returns the attributes of arguments or results with these shardings, as an array."""
        if shardings not in self._dictionaries:
            context = self._module.context
            self._dictionaries[shardings] = ir.ArrayAttr.get(
                [ir.DictAttr.get({sdy.SHARDING: sdy.attribute(one, context)}, context) for one in shardings], context
            )
        return self._dictionaries[shardings]


# The manual axes of the computation from which a function was made.
MANUAL_AXES = "sdy.func_manual_axes"


@register
class UnflattenCallGraph(ModulePass):
    """Redirects calls of copies of a function that have equal shardings to the first of these copies that is called.

    Copies without calls are kept, for `symbol-dce`. Afterwards no function records the function of which it is a copy.
    """

    name = "sdy-unflatten-call-graph"
    summary = "Deduplicates copies of functions with the same shardings"
    needs = ("func.call", ORIGINAL_NAME, MANUAL_AXES)

    dedup_functions_fully: bool = option(
        False, "Keep one copy even if the shardings of arguments and results differ, the one that most calls agree on"
    )

    def run(self, op: Any) -> bool | Changes:
        graph, meshes = call_graph(op), sdy.meshes(op)
        found, every = graph.functions, graph.all_calls
        names = chain.from_iterable(graph.called.values())
        pairs = [(call, name) for call, name in zip(every, names, strict=True) if name in found]
        calls, called = [call for call, _ in pairs], [name for _, name in pairs]
        copies = _copies({name: found[name] for name in called}, meshes)
        chosen = _most_called(called, copies) if self.dedup_functions_fully else _first_called(called, copies)
        changed = []
        for call, name in zip(calls, called, strict=True):
            if chosen[name] != name:
                set_callee(call, chosen[name])
                changed.append(call)
        for attribute in (ORIGINAL_NAME, MANUAL_AXES):
            (column,) = attribute_columns(list(found.values()), attribute)
            for function, value in zip(found.values(), column, strict=True):
                if value is not None:
                    del function.attributes[attribute]
                    changed.append(function)
        now = changed_call_graph(CallGraph.between(found, graph.calls))
        return Changes(attributed=changed, analyses=now) if changed else False


@dataclass(frozen=True, slots=True)
class _Copy:
    """The original that a function is a copy of, and the number of its shardings."""

    original: tuple[str, Any]
    shardings: int


def _copies(functions: Mapping[str, Any], meshes: Mapping[str, Mesh]) -> dict[str, _Copy]:
    """Returns the functions as copies; equal shardings have equal numbers."""
    numbers: dict[tuple[TensorShardingPerValue | None, ...], int] = {}
    known: dict[tuple[Any, ...], int] = {}
    names = ("sym_name", ORIGINAL_NAME, MANUAL_AXES, "function_type", *(side.value for side in Side))
    columns = attribute_columns(list(functions.values()), *names)
    copies = {}
    for (name, function), row in zip(functions.items(), zip(*columns, strict=True), strict=True):
        symbol, original, manual, *signature = row
        key = tuple(signature)
        if key not in known:
            shardings = tuple(shardings_per_value(function, side, meshes) for side in Side)
            known[key] = numbers.setdefault(shardings, len(numbers))
        copies[name] = _Copy(((original or symbol).value, manual), known[key])
    return copies


def _first_called(called: list[str], copies: Mapping[str, _Copy]) -> dict[str, str]:
    """Returns, for each function, the one to call instead: of equal copies, the one called first."""
    first: dict[_Copy, str] = {}
    for name in called:
        first.setdefault(copies[name], name)
    return {name: first[copy] for name, copy in copies.items()}


def _most_called(called: list[str], copies: Mapping[str, _Copy]) -> dict[str, str]:
    """Returns, for each function, the one to call instead: of all copies, one whose shardings the most calls have.

    If several shardings have the most calls, the one that reaches this number first wins.
    """
    counts: Counter[_Copy] = Counter()
    best: dict[tuple[str, Any], str] = {}
    for name in called:
        copy = copies[name]
        counts[copy] += 1
        kept = best.setdefault(copy.original, name)
        if counts[copy] > counts[copies[kept]]:
            best[copy.original] = name
    return {name: best[copy.original] for name, copy in copies.items()}
