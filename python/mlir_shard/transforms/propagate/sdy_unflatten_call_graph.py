# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls share a function again where propagation has left its copies alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlir_shard.asm.editor import attribute_columns
from mlir_shard.dialects import sdy
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import Mesh, TensorShardingPerValue
from mlir_shard.transforms.call_graph import ORIGINAL_NAME, functions, set_callee
from mlir_shard.transforms.function_shardings import Side, shardings_per_value
from mlir_shard.transforms.operations import operations_named

# The manual axes of the computation that a function was made of.
MANUAL_AXES = "sdy.func_manual_axes"


@register
class UnflattenCallGraph(Pass):
    """Makes calls of copies of a function that agree in shardings call the first of them.

    Copies that no call is left of stay, for `symbol-dce`; none says any more what it is a copy of.
    """

    name = "sdy-unflatten-call-graph"
    anchor = "builtin.module"
    summary = "Makes calls share functions that are copies with the same shardings"

    dedup_functions_fully: bool = option(
        False, "Share one copy whatever the shardings of arguments and results, that of which the most calls agree"
    )

    def run(self, op: Any) -> None:
        found, meshes = functions(op), sdy.meshes(op)
        every = operations_named(op, "func.call")
        (symbols,) = attribute_columns(every, "callee")
        pairs = [(call, name) for call, symbol in zip(every, symbols, strict=True) if (name := symbol.value) in found]
        calls, called = [call for call, _ in pairs], [name for _, name in pairs]
        copies = _copies({name: found[name] for name in called}, meshes)
        chosen = _most_called(called, copies) if self.dedup_functions_fully else _first_called(called, copies)
        for call, name in zip(calls, called, strict=True):
            if chosen[name] != name:
                set_callee(call, chosen[name])
        for attribute in (ORIGINAL_NAME, MANUAL_AXES):
            (column,) = attribute_columns(list(found.values()), attribute)
            for function, value in zip(found.values(), column, strict=True):
                if value is not None:
                    del function.attributes[attribute]


@dataclass(frozen=True, slots=True)
class _Copy:
    """What a function is a copy of, and the shardings it has as such, by a number."""

    original: tuple[str, Any]
    shardings: int


def _copies(functions: Mapping[str, Any], meshes: Mapping[str, Mesh]) -> dict[str, _Copy]:
    """The functions as copies; equal shardings have equal numbers."""
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
    """For each function the one to call instead: of those that are alike the one called first."""
    first: dict[_Copy, str] = {}
    for name in called:
        first.setdefault(copies[name], name)
    return {name: first[copy] for name, copy in copies.items()}


def _most_called(called: list[str], copies: Mapping[str, _Copy]) -> dict[str, str]:
    """For each function the one to call instead: of all copies one with the shardings that the most calls have.

    Of shardings that as many calls have, those that had so many first.
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
