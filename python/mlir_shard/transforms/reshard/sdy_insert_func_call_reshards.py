# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inserts explicit reshards where a call and its function have different shardings of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import attribute_columns
from mlir_shard.passes.registry import Changes, Pass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.call_graph import call_graph
from mlir_shard.transforms.data_flow_edges import set_result_shardings
from mlir_shard.transforms.shardings import Side, shardings_per_value


@register
class InsertFuncCallReshards(Pass):
    """Gives the results of each call the shardings of the function's results. A result whose sharding changes is
    followed by an `sdy.reshard` to its old sharding. Results of functions without shardings are replicated."""

    name = "sdy-insert-func-call-reshards"
    anchor = "builtin.module"
    summary = "Inserts reshards where the result shardings of calls and functions differ"
    needs = ("func.call",)

    def run(self, op: Any) -> bool | Changes:
        graph = call_graph(op)
        calls = graph.all_calls
        if not calls:
            return False
        found, meshes = graph.functions, sdy.meshes(op)
        given = {name: shardings_per_value(function, Side.RESULTS, meshes) for name, function in found.items()}
        symbols, attributes = attribute_columns(calls, "callee", sdy.SHARDING)
        changes: dict[tuple[Any, Any], _Change | None] = {}
        made: list[Any] = []
        changed: list[Any] = []
        for call, symbol, attribute in zip(calls, symbols, attributes, strict=True):
            key = (symbol, attribute)
            if key not in changes:
                name = symbol.value
                of_function, wanted = given.get(name), None if attribute is None else attribute.value.shardings
                if of_function is not None:
                    changes[key] = _Change.between(of_function.shardings, wanted)
                elif wanted is not None and name in found:
                    changes[key] = _Change.between(tuple(map(_replicated_like, wanted)), wanted)
                else:
                    changes[key] = None
            change = changes[key]
            if change is not None:
                made += change.make(call)
                changed.append(call)
        return Changes(made, changed) if changed else False


def _replicated_like(sharding: TensorSharding) -> TensorSharding:
    return TensorSharding.fully_closed(sharding.rank, sharding.mesh_or_ref)


@dataclass(frozen=True, slots=True)
class _Change:
    """The shardings that a function gives its results, and the targets of the results to reshard, by index."""

    given: tuple[TensorSharding, ...]
    targets: tuple[tuple[int, TensorSharding], ...]
    is_said: bool

    @staticmethod
    def between(given: tuple[TensorSharding, ...], wanted: tuple[TensorSharding, ...] | None) -> _Change:
        """Returns the change at a call whose results have the shardings `wanted`, or, for None, are not sharded."""
        targets = []
        for index, sharding in enumerate(given):
            target = _replicated_like(sharding) if wanted is None else wanted[index]
            if not sharding.is_equivalent(None if wanted is None else target):
                targets.append((index, target))
        return _Change(given, tuple(targets), given == wanted)

    def make(self, call: Any) -> list[Any]:
        """Gives the results of a call these shardings and reshards them; returns the reshards."""
        made = []
        for index, target in self.targets:
            result = call.results[index]
            reshard = sdy.ReshardOp(result, target, loc=call.location, ip=ir.InsertionPoint.after(call))
            result.replace_all_uses_except(reshard.result, reshard.operation)
            made.append(reshard.operation)
        if not self.is_said:
            set_result_shardings(call, self.given)
        return made
