# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sinking `sdy.func_data_flow_edge`s: arguments of functions and results of calls take their shardings."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, operations_named
from mlir_shard.passes.analyses import held_operations
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.shardings import Side, set_shardings, shardings_of

FUNC_EDGE = "sdy.func_data_flow_edge"


def sink_func_edges(function: Any, *, opens: bool) -> bool:
    """Gives the operand of each `sdy.func_data_flow_edge` in a function the edge's sharding, and uses it instead.

    If the edge has none, the operand keeps its sharding, or gets a fully open one with `opens`. Returns whether there
    was an edge.
    """
    arguments = shardings_of(function, Side.ARGUMENTS)
    edges = operations_named(function, FUNC_EDGE)
    for edge in edges:
        operand, result = edge.operands[0], edge.results[0]
        in_signature = isinstance(operand.owner, ir.Block)
        known = arguments[operand.arg_number] if in_signature else sdy.get_sharding(operand)
        sharding = sdy.get_sharding(result) or (_opened(known) if opens else known)
        if in_signature:
            arguments[operand.arg_number] = sharding
        elif sharding is not None:
            sdy.set_sharding(operand, sharding)
        result.replace_all_uses_with(operand)
        edge.erase()
    if edges:
        set_shardings(function, Side.ARGUMENTS, arguments)
    return bool(edges)


def sink_all_func_edges(module: Any) -> bool:
    """Erases all `sdy.func_data_flow_edge`s, before calls are removed; arguments and calls get their shardings.

    Returns whether there was one.
    """
    if not held_operations(module, FUNC_EDGE):
        return False
    for function in functions(module).values():
        sink_func_edges(function, opens=False)
    return True


def _opened(sharding: TensorSharding | None) -> TensorSharding | None:
    return None if sharding is None else TensorSharding.fully_open(sharding.rank, sharding.mesh_or_ref)
