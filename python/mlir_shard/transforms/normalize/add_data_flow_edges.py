# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that add data-flow edges as operations, around ops with regions and around functions and calls.

An edge has the sharding that all its values share, for propagation and constraints.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow_edges import are_known, edges_of, has_edges, is_static_tensor
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, operations_named, operations_where
from mlir_shard.ir.operation_list import OperationList, capsules_of
from mlir_shard.passes.registry import Changes, ModulePass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.call_graph import has_body, main_function
from mlir_shard.transforms.data_flow_edges import add_edges, add_known_edges
from mlir_shard.transforms.func_edges import FUNC_EDGE
from mlir_shard.transforms.shardings import Side, shardings_of


@register
class AddDataFlowEdges(ModulePass):
    """Inserts a `sdy.data_flow_edge` after each value that owns a data-flow edge, with the sharding of the value.

    Owners are results, and block arguments of manual and named computations. Values without a static shape get no edge.
    """

    name = "sdy-add-data-flow-edges"
    summary = "Inserts an `sdy.data_flow_edge` after every value that owns a data-flow edge"
    needs = staticmethod(has_edges)

    def run(self, op: Any) -> Changes | bool:
        found = operations_where(op, has_edges)
        made = list(add_known_edges([inner for inner in found if are_known(inner.name)]).capsules)
        for inner in found:
            if not are_known(inner.name):
                owners = [edge.owner for edge in edges_of(inner)]
                made += capsules_of(add_edges([owner for owner in owners if isinstance(owner.owner, ir.Block)]))
                made += capsules_of(add_edges([owner for owner in owners if not isinstance(owner.owner, ir.Block)]))
        return Changes(OperationList(made)) if made else False


@register
class AddFuncDataFlowEdges(ModulePass):
    """Inserts a `sdy.func_data_flow_edge` after each argument of each function except the main one, and after each
    result of each call, with the sharding of that value. Values that have an edge keep it, and values without a static
    shape get none."""

    name = "sdy-add-func-data-flow-edges"
    summary = "Inserts an `sdy.func_data_flow_edge` after every function argument and call result"

    def run(self, op: Any) -> None:
        main = main_function(op)
        calls = operations_named(op, "func.call")
        for function in functions(op).values():
            if function == main or not has_body(function):
                continue
            block = function.regions[0].blocks[0]
            point = ir.InsertionPoint.at_block_begin(block)
            for argument, sharding in zip(block.arguments, shardings_of(function, Side.ARGUMENTS), strict=True):
                _add_edge(argument, sharding, function.location, point)
        for call in calls:
            # The edges keep the order of the results: each is inserted right behind the call, the last one first.
            for result in reversed(call.results):
                _add_edge(result, sdy.get_sharding(result), call.location, ir.InsertionPoint.after(call))


def _add_edge(value: Any, sharding: TensorSharding | None, location: Any, point: Any) -> None:
    if not is_static_tensor(value) or any(use.owner.name == FUNC_EDGE for use in value.uses):
        return
    edge = sdy.FuncDataFlowEdgeOp(value, loc=location, ip=point)
    value.replace_all_uses_except(edge.result, edge.operation)
    if sharding is not None:
        sdy.set_sharding(edge.result, sharding)
