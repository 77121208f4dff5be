# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shardings that a manual or named computation holds for the arguments of its body."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS
from mlir_shard.dialects.data_flow_edges import argument_shardings, owning_arguments, set_argument_shardings
from mlir_shard.host import ir
from mlir_shard.rules.builder import rank_of
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.tensor import EdgeFrame

_IN_SHARDINGS = "in_shardings"


def edge_frame(op: Any, owner: Any) -> EdgeFrame | None:
    """What an edge of a manual computation needs to know of it; None for an edge of any other op."""
    if op.name != "sdy.manual_computation":
        return None
    manual_axes = sdy.value(op.attributes["manual_axes"]).value
    into_body = isinstance(owner, ir.BlockArgument)
    shardings = sdy.value(op.attributes[_IN_SHARDINGS if into_body else "out_shardings"]).shardings
    index = ir.BlockArgument(owner).arg_number if into_body else ir.OpResult(owner).result_number
    return EdgeFrame(shardings[index], manual_axes, into_body)


def set_argument_sharding(argument: Any, sharding: TensorSharding) -> None:
    """Gives an argument of a computation's body the sharding it has inside; the others are open where none has one.

    The arguments of any other op have it where the op's dialect keeps it, and have none where it does not.
    """
    op = argument.owner.owner.operation
    if op.name not in ARGUMENT_OWNERS:
        kept = zip(owning_arguments(op), argument_shardings(op), strict=False)
        known = [(owner, sharding if owner == argument else old) for owner, old in kept]
        set_argument_shardings(op, [_known_or_open(old, owner, sharding.mesh_or_ref) for owner, old in known])
        return
    frame = edge_frame(op, argument)
    if frame is not None:
        sharding = frame.to_outside(sharding)
    if _IN_SHARDINGS in op.attributes:
        shardings = sdy.value(op.attributes[_IN_SHARDINGS])
    else:
        ranks = [rank_of(value.type) for value in argument.owner.arguments]
        shardings = TensorShardingPerValue.fully_open(ranks, sharding.mesh_or_ref)
    op.attributes[_IN_SHARDINGS] = sdy.attribute(shardings.replace(argument.arg_number, sharding), op.context)


def _known_or_open(sharding: TensorSharding | None, value: Any, mesh_or_ref: str | Mesh) -> TensorSharding:
    return TensorSharding.fully_open(rank_of(value.type), mesh_or_ref) if sharding is None else sharding
