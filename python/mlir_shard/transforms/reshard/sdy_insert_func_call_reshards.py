# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a call asks for its results in other shardings than its function gives them, the change is said."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.call_graph import callee, functions
from mlir_shard.transforms.data_flow_edges import result_shardings, set_result_shardings
from mlir_shard.transforms.function_shardings import Side, shardings_per_value
from mlir_shard.transforms.operations import operations_named


@register
class InsertFuncCallReshards(Pass):
    """Gives the results of each call the shardings that the function says, and puts an `sdy.reshard` to the old one
    behind each result that this shards otherwise. A function that says nothing shards nothing."""

    name = "sdy-insert-func-call-reshards"
    anchor = "builtin.module"
    summary = "Inserts reshards where calls and functions disagree on the shardings of results"

    def run(self, op: Any) -> None:
        calls = operations_named(op, "func.call")
        if not calls:
            return
        found, meshes = functions(op), sdy.meshes(op)
        given = {name: shardings_per_value(function, Side.RESULTS, meshes) for name, function in found.items()}
        for call in calls:
            of_function, wanted = given.get(callee(call)), result_shardings(call)
            if of_function is not None:
                _reshard(call, of_function.shardings, wanted)
            elif wanted is not None and callee(call) in found:
                _reshard(call, tuple(map(_replicated_like, wanted)), wanted)


def _replicated_like(sharding: TensorSharding) -> TensorSharding:
    return TensorSharding.fully_closed(sharding.rank, sharding.mesh_or_ref)


def _reshard(call: Any, given: tuple[TensorSharding, ...], wanted: tuple[TensorSharding, ...] | None) -> None:
    """Says that a call gives some shardings, and reshards its results to those wanted; None wants nothing sharded."""
    for index, (result, sharding) in enumerate(zip(call.results, given, strict=True)):
        target = _replicated_like(sharding) if wanted is None else wanted[index]
        if not sharding.is_equivalent(None if wanted is None else target):
            reshard = sdy.ReshardOp(result, target, loc=call.location, ip=ir.InsertionPoint.after(call))
            result.replace_all_uses_except(reshard.result, reshard.operation)
    set_result_shardings(call, given)
