# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named computations made of calls, with the attributes of the functions that are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.asm.editor import attribute_columns, replace, terminator
from mlir_shard.dialects import sdy
from mlir_shard.dialects.type_runs import length_attribute
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.call_graph import ORIGINAL_NAME
from mlir_shard.transforms.computation_edges import COMPUTATION
from mlir_shard.transforms.function_shardings import Side, shardings_per_value

EXECUTION_THREAD = "execution_thread"
# What a call says about calling, rather than about what it computes.
_CALL_ATTRIBUTES = ("callee", "arg_attrs", "res_attrs", "no_inline", sdy.SHARDING)


class CalledFunctions:
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
