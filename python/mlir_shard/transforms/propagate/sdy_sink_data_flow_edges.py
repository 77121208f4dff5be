# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data-flow edges go, and what they know about sharding goes to the operations that own them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects.data_flow_edges import edges_of, has_edges
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.data_flow_edges import (
    EDGE,
    edge_of,
    set_argument_shardings,
    set_result_shardings,
    shardings_of_edges,
)
from mlir_shard.transforms.operations import operations_where
from mlir_shard.transforms.propagate import debug_attributes


@register
class SinkDataFlowEdges(Pass):
    """Gives the owner of each `sdy.data_flow_edge` the edge's sharding, and uses it instead of the edge.

    Where some edges of an operation are sharded, its other block arguments or results become fully open.
    """

    name = "sdy-sink-data-flow-edges"
    anchor = "func.func"
    summary = "Moves the shardings of data-flow edges to their owners"

    sink_debug_sharding_origins: bool = option(False, "Keep what edges say about the origins of shardings")
    sink_debug_propagation_edge_sharding: bool = option(False, "Keep what edges say about the steps of propagation")

    def run(self, op: Any) -> bool:
        found = operations_where(op, lambda name: name == EDGE or has_edges(name))
        for owner in found:
            if owner.name != EDGE:
                self._sink(owner)
        for edge in found:
            if edge.name == EDGE:
                edge.results[0].replace_all_uses_with(edge.operands[0])
                edge.erase()
        return bool(found)

    def _sink(self, op: Any) -> None:
        owners = [edge.owner for edge in edges_of(op)]
        arguments = [owner for owner in owners if isinstance(owner.owner, ir.Block)]
        results = [owner for owner in owners if not isinstance(owner.owner, ir.Block)]
        of_arguments = shardings_of_edges(arguments)
        if of_arguments is not None:
            set_argument_shardings(op, of_arguments)
        of_results = shardings_of_edges(results)
        if of_results is not None:
            set_result_shardings(op, of_results)
        if self.sink_debug_sharding_origins:
            _keep(op, arguments, debug_attributes.SHARDING_ORIGINS, debug_attributes.BLOCK_ARG_SHARDING_ORIGINS)
            _keep(op, results, debug_attributes.SHARDING_ORIGINS, debug_attributes.RESULT_SHARDING_ORIGINS)
        if self.sink_debug_propagation_edge_sharding:
            _keep(op, arguments, debug_attributes.PROPAGATION_EDGES, debug_attributes.BLOCK_ARG_PROPAGATION_EDGES)
            _keep(op, results, debug_attributes.PROPAGATION_EDGES, debug_attributes.RESULT_PROPAGATION_EDGES)


def _keep(op: Any, owners: Sequence[Any], on_edge: str, on_owner: str) -> None:
    """Collects an attribute of the owners' edges in one of the operation; edges without it are left out."""
    edges = [edge for owner in owners if (edge := edge_of(owner)) is not None]
    found = [edge.attributes[on_edge] for edge in edges if on_edge in edge.attributes]
    op.attributes[on_owner] = ir.ArrayAttr.get(found, op.context)
