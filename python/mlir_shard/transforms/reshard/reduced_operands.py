# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reduction of an operand that is a partial sum along axes along which the results of its op are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.resharding.sharding_steps import ReduceAlong, ReshardError, reduction, reduction_except
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes
from mlir_shard.transforms.reshard.unreduced_axes import REDUCING_COLLECTIVES


def reduction_before(
    op: Any, source: TensorSharding, target: TensorSharding | None, meshes: Mapping[str, Mesh]
) -> ReduceAlong | None:
    """Returns the reduction of an operand of sharding `source`, without the axes that `op` reduces as a collective."""
    if op.name in REDUCING_COLLECTIVES:
        mesh = mesh_of(source, meshes)
        own = _reduced_by_collective(op)
        return None if mesh is None else reduction_except(source, (*unreduced_axes(target), *own), mesh)
    return reduction(source, target, meshes)


def unreduced_axes(sharding: TensorSharding | None) -> Axes:
    """Returns the axes along which a tensor is partial; none if it has no sharding."""
    return () if sharding is None else sharding.unreduced_axes


def common_unreduced(results: list[TensorSharding | None]) -> TensorSharding | None:
    """Returns the sharding of the first result; raises ReshardError if another has different unreduced axes."""
    first = results[0]
    for index, other in enumerate(results):
        if unreduced_axes(other) != unreduced_axes(first):
            raise ReshardError(
                f"result {index} is {_spelled(other)}, but result 0 is {_spelled(first)}: results must be unreduced "
                "along the same axes"
            )
    return first


def _spelled(sharding: TensorSharding | None) -> str:
    axes = unreduced_axes(sharding)
    return f"unreduced along {', '.join(map(str, axes))}" if axes else "not unreduced"


def check_terminator(op: Any) -> None:
    """Raises ReshardError if an op with an unreduced operand and without results is not a terminator."""
    block = op.block
    if block.operations[len(block.operations) - 1].operation != op:
        raise ReshardError("an operand is unreduced, but the op has no result that can be: reshard the operand first")


def _reduced_by_collective(op: Any) -> Axes:
    if op.name == "sdy.all_reduce":
        axes: Axes = sdy.value(op.attributes["reduction_axes"]).value
        return axes
    return tuple(axis for axes in sdy.value(op.attributes["reduce_scatter_axes"]).value for axis in axes.value)
