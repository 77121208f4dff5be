# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that share a sharding across a region, and the value that holds it.

An op with data-flow edges connects each of its results or block arguments (the targets of an edge) to its own operands
and those of its terminators (the sources). One target owns the edge and carries its sharding; if the only use of the
owner is an `sdy.data_flow_edge`, the result of that op carries it. This follows Shardy's design.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import islice
from typing import Any

from mlir_shard.asm import AsmSyntaxError
from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import value_of
from mlir_shard.dialects.data_flow_edges import (
    are_known,
    argument_shardings,
    edges_of,
    has_edges,
    keeps_argument_shardings,
    owning_arguments,
)
from mlir_shard.host import ir
from mlir_shard.sharding import ManualAxes, TensorSharding, TensorShardingPerValue

# Built-in ops with data-flow edges; `data_flow_edges` finds the edges of all others.
# Ops with data-flow edges whose block arguments each own an edge.
ARGUMENT_OWNERS = ("sdy.manual_computation", "sdy.named_computation")
# Ops with data-flow edges whose result i owns the edge of block argument i of every region.
RESULT_OWNERS = ("stablehlo.while",)
# Ops with data-flow edges to their results only.
RESULT_ONLY = ("stablehlo.case", "stablehlo.optimization_barrier")
DATA_FLOW_OPS = (*ARGUMENT_OWNERS, *RESULT_OWNERS, *RESULT_ONLY)


def owning_op(value: Any) -> Any:
    """Returns the operation that defines a value, or whose region contains the block of the block argument."""
    owner = value.owner
    return (owner.owner if isinstance(owner, ir.Block) else owner).operation


def ancestors(op: Any) -> Iterator[Any]:
    """Yields the operations around `op`, innermost first."""
    while (parent := op.parent) is not None:
        op = parent.operation
        yield op


def edge_owner(value: Any) -> Any | None:
    """Returns the owner of the data-flow edge that has `value` as a target; None if no such edge exists."""
    op = owning_op(value)
    is_argument = isinstance(value.owner, ir.Block)
    if not is_argument and are_known(op.name):
        return value  # All results of these ops own edges.
    if op.name not in DATA_FLOW_OPS:
        edges = edges_of(op)
        return next((edge.owner for edge in edges if value == edge.owner or value in edge.other_targets), None)
    if op.name in ARGUMENT_OWNERS:
        return value
    index = ir.BlockArgument(value).arg_number
    return op.results[index] if op.name in RESULT_OWNERS and index < len(op.results) else None


def shardable_value(value: Any) -> Any | None:
    """Returns the value that holds the sharding of `value`; None for a block argument that cannot have a sharding."""
    owner = edge_owner(value)
    if owner is not None:
        uses = list(islice(owner.uses, 2))
        if len(uses) == 1 and uses[0].owner.operation.name == "sdy.data_flow_edge":
            return uses[0].owner.operation.results[0]
    if not isinstance(value.owner, ir.Block) or "function_type" in owning_op(value).attributes:
        return value
    return owner


def sharding_of(value: Any) -> TensorSharding | None:
    """Returns the sharding of a value for its users, which is attached to it or to the owner of its data-flow edge.

    Inside a manual computation the manual axes are removed. Returns None without a sharding, or if the attribute
    cannot be read.
    """
    owner = value.owner
    # Results of most operations hold their shardings themselves.
    is_held = not isinstance(owner, ir.Block) and not has_edges(owner.operation.name)
    holder = value if is_held else shardable_value(value)
    if holder is None:
        return None
    try:
        if isinstance(holder.owner, ir.Block):
            op = owning_op(holder)
            if op.name in ARGUMENT_OWNERS:
                return _argument_sharding(op, ir.BlockArgument(holder).arg_number)
            if keeps_argument_shardings(op.name):
                shardings = zip(owning_arguments(op), argument_shardings(op), strict=True)
                return next((sharding for owner, sharding in shardings if owner == holder), None)
        return sdy.get_sharding(holder)
    except AsmSyntaxError:
        return None


def sharding_before_barriers(value: Any) -> TensorSharding | None:
    """Returns the sharding of a value, or of the source of the chain of propagation barriers that defines it."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name == "sdy.propagation_barrier":
        value = value.owner.operation.operands[0]
    return sharding_of(value)


def body_shardings(op: Any) -> tuple[TensorSharding, ...] | None:
    """Returns the shardings of the arguments of a computation inside its body, which are without manual axes.

    Returns None if the computation has no shardings or they cannot be read.
    """
    shardings = value_of(op, "in_shardings", TensorShardingPerValue)
    return None if shardings is None else _without_axes(shardings.shardings, manual_axes(op))


def manual_axes(op: Any) -> tuple[str, ...]:
    """Returns the manual axes of a computation; empty for a named computation."""
    axes = value_of(op, "manual_axes", ManualAxes)
    return () if axes is None else axes.value


@functools.lru_cache(4096)
def _without_axes(shardings: tuple[TensorSharding, ...], axes: tuple[str, ...]) -> tuple[TensorSharding, ...]:
    return tuple(sharding.without_axes(axes) for sharding in shardings)


def _argument_sharding(op: Any, index: int) -> TensorSharding | None:
    shardings = body_shardings(op)
    return None if shardings is None or index >= len(shardings) else shardings[index]
