# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls share a function again where propagation has left its copies alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import Mesh, TensorShardingPerValue
from mlir_shard.transforms.call_graph import ORIGINAL_NAME, callee, functions, original_name, set_callee
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
        calls = [call for call in operations_named(op, "func.call") if callee(call) in found]
        called = [callee(call) for call in calls]
        copies = {name: _Copy.of(found[name], meshes) for name in called}
        chosen = _most_called(called, copies) if self.dedup_functions_fully else _first_called(called, copies)
        for call, name in zip(calls, called, strict=True):
            if chosen[name] != name:
                set_callee(call, chosen[name])
        for function in found.values():
            for attribute in (ORIGINAL_NAME, MANUAL_AXES):
                if attribute in function.attributes:
                    del function.attributes[attribute]


@dataclass(frozen=True, slots=True)
class _Copy:
    """What a function is a copy of, and the shardings it has as such."""

    original: tuple[str, Any]
    in_shardings: TensorShardingPerValue | None
    out_shardings: TensorShardingPerValue | None

    @staticmethod
    def of(function: Any, meshes: Mapping[str, Mesh]) -> _Copy:
        manual = function.attributes.get(MANUAL_AXES)
        return _Copy(
            (original_name(function), manual),
            shardings_per_value(function, Side.ARGUMENTS, meshes),
            shardings_per_value(function, Side.RESULTS, meshes),
        )


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
