# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The edges of functions and calls go, and what they know about sharding goes to where they came from."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.function_shardings import Side, set_shardings, shardings_of
from mlir_shard.transforms.operations import operations_named


@register
class SinkFuncDataFlowEdges(Pass):
    """Gives the operand of each `sdy.func_data_flow_edge` the edge's sharding, and uses it instead of the edge.

    Where the edge has none, what is sharded becomes fully open.
    """

    name = "sdy-sink-func-data-flow-edges"
    anchor = "func.func"
    summary = "Moves the shardings of function edges to arguments and call results"

    def run(self, op: Any) -> bool:
        arguments = shardings_of(op, Side.ARGUMENTS)
        edges = operations_named(op, "sdy.func_data_flow_edge")
        for edge in edges:
            operand, result = edge.operands[0], edge.results[0]
            in_signature = isinstance(operand.owner, ir.Block)
            known = arguments[operand.arg_number] if in_signature else sdy.get_sharding(operand)
            sharding = sdy.get_sharding(result) or _opened(known)
            if in_signature:
                arguments[operand.arg_number] = sharding
            elif sharding is not None:
                sdy.set_sharding(operand, sharding)
            result.replace_all_uses_with(operand)
            edge.erase()
        if edges:
            set_shardings(op, Side.ARGUMENTS, arguments)
        return bool(edges)


def _opened(sharding: TensorSharding | None) -> TensorSharding | None:
    return None if sharding is None else TensorSharding.fully_open(sharding.rank, sharding.mesh_or_ref)
