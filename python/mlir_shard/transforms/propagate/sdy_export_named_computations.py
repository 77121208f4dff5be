# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named computations become calls of functions again."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.editor import append, attribute_columns, function_type, replace, terminator
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.call_graph import ORIGINAL_NAME
from mlir_shard.transforms.computation_edges import COMPUTATION, take_shardings
from mlir_shard.transforms.function_shardings import Side
from mlir_shard.transforms.operations import operations_named_in_post_order

EXECUTION_THREAD = "execution_thread"
_OWN_ATTRIBUTES = ("name", "in_shardings", "out_shardings", EXECUTION_THREAD, OPERAND_LENGTHS, RESULT_LENGTHS)


@register
class ExportNamedComputations(Pass):
    """Makes of each named computation a private function of that name, and a call of it.

    The function's arguments and the results of the call get the shardings of the computation, or those of its
    data-flow edges, which go; with `shard-function-results` the function's results get those of the call. A name that
    is taken gets a number. The function says in `sdy.original_func_name` what the computation was called.
    """

    name = "sdy-export-named-computations"
    anchor = "builtin.module"
    summary = "Turns named computations into functions and calls"

    shard_function_results: bool = option(False, "Give the results of functions the shardings of their calls' results")

    def run(self, op: Any) -> bool:
        computations = operations_named_in_post_order(op, COMPUTATION)
        export = _Export(op)
        names, threads = attribute_columns(computations, "name", EXECUTION_THREAD)
        shardings = take_shardings(computations)
        for computation, name, thread, (given, made) in zip(computations, names, threads, shardings, strict=True):
            attributes = {} if thread is None else {EXECUTION_THREAD: thread}
            if self.shard_function_results and made:
                attributes[Side.RESULTS.value] = export.dictionaries_of(made)
            function = export.function(computation, name, given, attributes)
            export.call(computation, function, made)
        return bool(computations)


class _Export:
    """Makes functions and calls in a module; what several have in common is made once."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._symbols = ir.SymbolTable(module)
        self._private = ir.StringAttr.get("private", module.context)
        self._dictionaries: dict[tuple[TensorSharding, ...], Any] = {}
        self._attributes: dict[tuple[TensorSharding, ...], Any] = {}

    def function(
        self, computation: Any, name: Any, shardings: tuple[TensorSharding, ...] | None, attributes: dict[str, Any]
    ) -> str:
        """Makes a private function at the end of the module with the body of a computation; gives its symbol."""
        attributes["sym_name"] = attributes[ORIGINAL_NAME] = name
        attributes["sym_visibility"] = self._private
        attributes["function_type"] = function_type(computation)
        if shardings:
            attributes[Side.ARGUMENTS.value] = self.dictionaries_of(shardings)
        function = append(self._module, "func.func", attributes, computation)
        replace(terminator(function), "func.return", {})
        symbol: str = self._symbols.insert(function).value
        return symbol

    def call(self, computation: Any, symbol: str, shardings: tuple[TensorSharding, ...] | None) -> None:
        """Puts a call of a function in the place of a computation, with those shardings of its results."""
        added = {"callee": ir.FlatSymbolRefAttr.get(symbol, self._module.context)}
        if shardings is None:
            replace(computation, "func.call", added, dropped=_OWN_ATTRIBUTES)
            return
        if shardings not in self._attributes:
            self._attributes[shardings] = sdy.attribute(TensorShardingPerValue(shardings), self._module.context)
        added[sdy.SHARDING] = self._attributes[shardings]
        replace(computation, "func.call", added, dropped=(*_OWN_ATTRIBUTES, sdy.SHARDING))

    def dictionaries_of(self, shardings: tuple[TensorSharding, ...]) -> Any:
        """The attributes of arguments or results with those shardings, as an array."""
        if shardings not in self._dictionaries:
            context = self._module.context
            self._dictionaries[shardings] = ir.ArrayAttr.get(
                [ir.DictAttr.get({sdy.SHARDING: sdy.attribute(one, context)}, context) for one in shardings], context
            )
        return self._dictionaries[shardings]
