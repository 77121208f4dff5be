# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shards in which the values of a program are, by their shardings, and collectives of sdy on local tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, split_mesh_axes
from mlir_shard.transforms.collectives.stablehlo import StablehloCollectives, positions_along


@dataclass(frozen=True, slots=True)
class Placed:
    """A sharded tensor: its global type, sharding and mesh."""

    type: Any
    sharding: TensorSharding
    mesh: Mesh

    @property
    def layout(self) -> TensorLayout:
        """The same without the types of the host."""
        return TensorLayout(self.sharding, self.mesh, tuple(self.type.shape))


class PlacedValues:
    """Values of a module whose types and shardings are still those of the global program.

    PassFailure where shards cannot be even: a dynamic dimension, a size that its axes do not divide.
    """

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._known: dict[Any, Placed | None] = {}
        self._cut: dict[TensorSharding, tuple[TensorSharding, Mesh] | None] = {}

    def of(self, value: Any) -> Placed | None:
        """How a value is sharded; None where it is replicated."""
        if value not in self._known:
            self._known[value] = self.placed(value.type, sharding_of(value), value.owner)
        return self._known[value]

    def set(self, value: Any, placed: Placed | None) -> None:
        """Sets how a value is sharded."""
        self._known[value] = placed

    def placed(self, type_: Any, sharding: TensorSharding | None, where: Any) -> Placed | None:
        """How a value of a type and sharding is sharded; None where it is replicated."""
        if sharding is None:
            return None
        if sharding not in self._cut:
            self._cut[sharding] = self._without_trivial_axes(sharding, where)
        found = self._cut[sharding]
        if found is None or not isinstance(type_, ir.RankedTensorType):
            return None
        placed = Placed(type_, *found)
        _check_even(placed, sharding, where)
        return placed

    def exactly(self, value: Any, default: TensorSharding) -> Placed:
        """How a value is sharded, also where it is replicated; by `default` where it has no sharding."""
        sharding = sharding_of(value) or default
        return Placed(value.type, sharding, self.mesh(sharding, value.owner))

    @property
    def program_mesh(self) -> tuple[str, Mesh] | None:
        """The first mesh of several devices that the module defines, with its name."""
        return next(((name, mesh) for name, mesh in self._meshes.items() if mesh.total_size > 1), None)

    def mesh(self, sharding: TensorSharding, where: Any) -> Mesh:
        """The mesh of a sharding; PassFailure where the module has none of its name."""
        mesh = mesh_of(sharding, self._meshes)
        if mesh is None:
            raise PassFailure(
                f"a sharding refers to mesh {sharding.mesh_text}, which the module does not define", where
            )
        return mesh

    def _without_trivial_axes(self, sharding: TensorSharding, where: Any) -> tuple[TensorSharding, Mesh] | None:
        if sharding.is_fully_replicated:
            return None
        mesh = self.mesh(sharding, where)
        if mesh.is_maximal:
            return None
        dims = (
            replace(dim, axes=tuple(axis for axis in dim.axes if axis.size(mesh) > 1)) for dim in sharding.dim_shardings
        )
        cut = replace(sharding, dim_shardings=tuple(dims))
        return None if cut.is_fully_replicated else (cut, mesh)


def local_type(placed: Placed | None, type_: Any) -> Any:
    """The type of a shard, or the type itself of a replicated value."""
    if placed is None:
        return type_
    shape = [
        size // dim.sharded_size(placed.mesh) if dim.axes else size
        for size, dim in zip(placed.type.shape, placed.sharding.dim_shardings, strict=True)
    ]
    return ir.RankedTensorType.get(shape, placed.type.element_type, placed.type.encoding)


def are_alike(one: Placed | None, other: Placed | None) -> bool:
    """Whether every device has the same shard of both."""
    if one is None or other is None:
        return one is other
    pairs = zip(one.sharding.dim_shardings, other.sharding.dim_shardings, strict=True)
    return one.mesh == other.mesh and all(mine.axes == theirs.axes for mine, theirs in pairs)


def _check_even(placed: Placed, sharding: TensorSharding, where: Any) -> None:
    type_, found = placed.type, placed.sharding.dim_shardings
    if len(found) != type_.rank:
        raise PassFailure(f"a tensor of type {type_} is sharded as {sharding}, which is for rank {len(found)}", where)
    for dim, of in enumerate(found):
        if not of.axes:
            continue
        if type_.is_dynamic_dim(dim):
            raise PassFailure(f"dimension {dim} of {type_} is dynamic and sharded as {sharding}", where)
        count = of.sharded_size(placed.mesh)
        if type_.shape[dim] % count:
            raise PassFailure(
                f"dimension {dim} of {type_} is in {count} blocks that are not even: "
                "pad it first, as sdy-pad-for-divisibility does",
                where,
            )


_KINDS = (ReductionOp.SUM, ReductionOp.MAX, ReductionOp.MIN)


def local_collective(
    op: Any, value: Any, before: Placed, after: Placed, local_type: Any, builder: StablehloCollectives
) -> Any:
    """Returns the local result, of `local_type`, of a collective of sdy.

    It is built at the current insertion point and location, from the local operand.

    Args:
        op: a collective of sdy.
        value: the local operand.
        before: where the global operand is.
        after: where the global result is.
        builder: the collectives on the mesh of `after`.
    """
    if 0 in local_type.shape:
        # Nothing moves, and StableHLO gathers along no dimension without elements.
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
    """Returns what a collective of sdy reduces with."""
    return _KINDS[op.attributes["reduction_op"].value if "reduction_op" in op.attributes else 0]


def _per_dim(attribute: Any) -> dict[int, Axes]:
    return {dim: one.value for dim, one in enumerate(attribute.value.value) if one.value}


def _pairs(before: Placed, after: Placed) -> list[tuple[int, int]]:
    """The devices (sender, receiver) of the permutation of shards that a change of sharding is.

    Axes that shard no dimension keep their order behind those that do. Where values are partial along one, that may
    exchange partial values of several sums.
    """
    if before.sharding.unreduced_axes or after.sharding.unreduced_axes:
        return [(sender, receiver) for receiver, sender in device_permutation(before.layout, after.layout).items()]
    used = (*before.sharding.used_axes, *after.sharding.used_axes)
    atoms = split_mesh_axes(used, after.mesh)
    receivers = {}
    for device, number in enumerate(positions_along(_in_order(after.sharding, atoms), after.mesh)):
        receivers[number] = device
    numbers = positions_along(_in_order(before.sharding, atoms), before.mesh)
    return [(device, receivers[number]) for device, number in enumerate(numbers)]


def _in_order(sharding: TensorSharding, atoms: Axes) -> tuple[AxisRef, ...]:
    """The atoms that the sharding has, dimension by dimension, then all others."""
    found = [atom for axis in sharding.sharding_axes for atom in atoms if axis.contains(atom)]
    return (*found, *(atom for atom in atoms if atom not in found))
