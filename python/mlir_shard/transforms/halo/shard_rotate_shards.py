# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotations along sharded dimensions, as collective permutes of the elements that change their shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import ancestors, sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_kinds import operations_of_results
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.resharding.device_permutation import shift_pairs
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.halo.halo_exchange import ManualPart
from mlir_shard.transforms.halo.moving_ops import Surroundings
from mlir_shard.transforms.shardings import sharding_and_mesh

# A permute lists the devices that send and receive; on larger meshes the slices are exchanged, without lists.
_MOST_DEVICES = 4096
_CONCATENATE, _SLICE, _MANUAL = "stablehlo.concatenate", "stablehlo.slice", "sdy.manual_computation"


@register
class RotateShards(ModulePass):
    """Computes rotations along sharded dimensions on shards, with collective permutes.

    A rotation, as by `jnp.roll`, is a concatenation of the last elements of a dimension and the elements before them,
    both slices of one tensor. It becomes a manual computation along the axes of the dimension, in which each device
    sends only the elements that move to another shard, those of the last shard to the first. The tensor and the
    rotation have to be sharded equally and evenly along the dimension.
    """

    name = "shard-rotate-shards"
    summary = "Computes rotations along sharded dimensions by collective permutes"
    needs = (_CONCATENATE,)

    def run(self, op: Any) -> bool:
        meshes = sdy.meshes(op)
        rotations = [
            found
            for one in operations_of_results(op, (_CONCATENATE,), (_SLICE,), 2)
            if (found := _Rotation.of(one)) is not None and all(around.name != _MANUAL for around in ancestors(one))
        ]
        if not rotations:
            return False
        around = Surroundings(meshes, StablehloProgram(Channels.of(op)))
        exchanged = [one.exchange(around) for one in rotations]
        return any(exchanged)


@dataclass(frozen=True, slots=True)
class _Rotation:
    """A concatenation of the last `amount` elements of a dimension of a tensor, and the elements before them."""

    op: Any
    dim: int
    amount: int

    @staticmethod
    def of(op: Any) -> _Rotation | None:
        """Returns the rotation that a concatenation computes; None if it is another one."""
        slices = [defining_op(value, _SLICE) for value in op.operands]
        behind, before, *others = slices
        if behind is None or before is None or others or not has_static_shapes(op):
            return None
        tensor, dim = behind.operands[0], op.attributes["dimension"].value
        if tensor != before.operands[0] or tensor.type != op.results[0].type:
            return None
        size, end = tensor.type.shape[dim], before.attributes["limit_indices"][dim]
        starts = [elements(one.attributes["start_indices"]) for one in (behind, before)]
        wanted = [0] * tensor.type.rank
        wanted[dim] = end
        strides = {stride for one in (behind, before) for stride in elements(one.attributes["strides"])}
        # The type of the result implies the limits in other dimensions.
        if starts != [wanted, [0] * len(wanted)] or strides != {1} or not 0 < end < size:
            return None
        return _Rotation(op, dim, size - end)

    @property
    def tensor(self) -> Any:
        """The tensor that is rotated, which may itself be a rotation that has been replaced."""
        return self.op.operands[0].owner.operands[0]

    def exchange(self, around: Surroundings) -> bool:
        """Replaces the rotation by an exchange of elements between shards; returns whether this is possible."""
        found = self._sharding(around.meshes)
        if found is None:
            return False
        sharding, mesh = found
        shape = self.tensor.type.shape
        axes = sharding.dim_shardings[self.dim].axes
        # A manual computation takes undivided axes: if dimensions share one, it takes all axes.
        parts = (around.part(mesh, some) for some in (axes, sharding.sharding_axes))
        part = next((part for part in parts if part.takes(shape, sharding)), None)
        if part is None:
            return False
        operand, result = (self.tensor, sharding), self.op.results[0]
        with ir.InsertionPoint(self.op), self.op.location:
            value = part.build([operand], result.type, sharding, lambda local: self._rotated(local[0], part, sharding))
        result.replace_all_uses_with(value)
        slices = [one.owner for one in self.op.operands]
        for op in (self.op, *slices):
            if not list(op.results[0].uses):
                op.erase()
        return True

    def _sharding(self, meshes: Mapping[str, Mesh]) -> tuple[TensorSharding, Mesh] | None:
        """Returns the sharding of the rotation and its mesh; None if shards cannot be rotated."""
        found, before = sharding_and_mesh(self.op.results[0], meshes), sharding_of(self.tensor)
        if found is None or before is None or before.mesh_or_ref != found[0].mesh_or_ref:
            return None
        sharding, mesh = found
        along = sharding.dim_shardings[self.dim]
        if before.dim_shardings[self.dim].axes != along.axes or before.unreduced_axes or sharding.unreduced_axes:
            return None
        return found if along.sharded_size(mesh) > 1 and mesh.total_size <= _MOST_DEVICES else None

    def _rotated(self, shard: Any, part: ManualPart, sharding: TensorSharding) -> Any:
        """Returns the shard of the rotation, built at the current insertion point."""
        axes, local = sharding.dim_shardings[self.dim].axes, sharding.without_axes(part.manual_axes)
        size = shard.type.shape[self.dim]
        hops, rest = divmod(self.amount, size)
        pieces = []
        for start, limit, offset in ((size - rest, size, hops + 1), (0, size - rest, hops)):
            if start == limit:
                continue
            piece = stablehlo.along(shard, self.dim, start, limit, local)
            if offset % part.builder.group_size(axes):
                piece = part.builder.permute(piece, shift_pairs(axes, part.builder.mesh, offset, rotates=True))
                sdy.set_sharding(piece, local)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else stablehlo.concatenate(pieces, self.dim, local)
