# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data-flow edges as operations, so that propagation and constraints have a place for what all their values share."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow_edges import edges_of, has_edges
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.data_flow_edges import add_edges
from mlir_shard.transforms.operations import operations_where


@register
class AddDataFlowEdges(Pass):
    """Puts a `sdy.data_flow_edge` behind each value that owns a data-flow edge; it takes the value's sharding.

    Owners are results, and block arguments of manual and named computations. What has no static shape gets none.
    """

    name = "sdy-add-data-flow-edges"
    anchor = "builtin.module"
    summary = "Adds an edge behind every value that owns a data-flow edge"

    def run(self, op: Any) -> bool:
        found = operations_where(op, has_edges)
        for inner in found:
            owners = [edge.owner for edge in edges_of(inner)]
            add_edges([owner for owner in owners if isinstance(owner.owner, ir.Block)])
            add_edges([owner for owner in owners if not isinstance(owner.owner, ir.Block)])
        return bool(found)
