# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of sdy on local tensors, in the form in which the program has them."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir import stablehlo
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, split_mesh_axes
from mlir_shard.transforms.collectives.stablehlo import StablehloCollectives, positions_along

_KINDS = (ReductionOp.SUM, ReductionOp.MAX, ReductionOp.MIN)


def local_collective(
    op: Any, value: Any, before: TensorLayout, after: TensorLayout, local_type: Any, builder: StablehloCollectives
) -> Any:
    """Returns the local result, of `local_type`, of a collective of sdy.

    It is built at the current insertion point and location, from the local operand.

    Args:
        op: a collective of sdy.
        value: the local operand.
        before: the layout of the global operand.
        after: the layout of the global result.
        builder: the collectives on the mesh of `after`.
    """
    if 0 in local_type.shape:
        # Nothing moves, and StableHLO cannot gather along a dimension without elements.
        return value if value.type == local_type else stablehlo.splat(local_type, 0)
    attributes = op.attributes
    if op.name == "sdy.all_gather":
        return builder.all_gather(value, _per_dim(attributes["gathering_axes"]))
    if op.name == "sdy.all_slice":
        return builder.all_slice(value, _per_dim(attributes["slicing_axes"]))
    if op.name == "sdy.all_reduce":
        return builder.all_reduce(value, attributes["reduction_axes"].value.value, reduction_kind(op))
    if op.name == "sdy.reduce_scatter":
        return builder.reduce_scatter(value, _per_dim(attributes["reduce_scatter_axes"]), reduction_kind(op))
    if op.name == "sdy.all_to_all":
        moves = [(one.src_dim, one.tgt_dim, one.axes) for one in attributes["params"].value.value]
        return builder.all_to_all(value, moves)
    if op.name == "sdy.replicated_to_unreduced":
        return builder.first_only(value, attributes["axes"].value.value)
    if op.name == "sdy.sharded_to_unreduced":
        starts = builder.shard_starts([one.value for one in attributes["axes"].value.value], value.type.shape)
        zeros = stablehlo.splat(local_type, 0)
        return stablehlo.build("dynamic_update_slice", local_type, zeros, value, *starts)
    return builder.permute(value, sorted(_pairs(before, after)))


def reduction_kind(op: Any) -> ReductionOp:
    """Returns the reduction of a collective of sdy."""
    return _KINDS[op.attributes["reduction_op"].value if "reduction_op" in op.attributes else 0]


def _per_dim(attribute: Any) -> dict[int, Axes]:
    return {dim: one.value for dim, one in enumerate(attribute.value.value) if one.value}


def _pairs(before: TensorLayout, after: TensorLayout) -> list[tuple[int, int]]:
    """Returns the pairs (sender, receiver) of devices in the permutation of shards for a change of sharding.

    Axes that shard no dimension keep their order behind those that do. If values are partial along such an axis, this
    may exchange partial values of several sums.
    """
    if before.sharding.unreduced_axes or after.sharding.unreduced_axes:
        return [(sender, receiver) for receiver, sender in device_permutation(before, after).items()]
    used = (*before.sharding.used_axes, *after.sharding.used_axes)
    atoms = split_mesh_axes(used, after.mesh)
    receivers = {}
    for device, number in enumerate(positions_along(_in_order(after.sharding, atoms), after.mesh)):
        receivers[number] = device
    numbers = positions_along(_in_order(before.sharding, atoms), before.mesh)
    return [(device, receivers[number]) for device, number in enumerate(numbers)]


def _in_order(sharding: TensorSharding, atoms: Axes) -> tuple[AxisRef, ...]:
    """Returns the atoms in the order of the dimensions that they shard, then all others."""
    found = [atom for axis in sharding.sharding_axes for atom in atoms if axis.contains(atom)]
    return (*found, *(atom for atom in atoms if atom not in found))
