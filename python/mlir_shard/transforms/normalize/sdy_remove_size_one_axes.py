# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings without the axes that have one device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, TensorSharding
from mlir_shard.transforms.sharding_attributes import transform_shardings


@register
class RemoveSizeOneAxes(Pass):
    """Takes axes of size one out of every sharding: they shard nothing, and would only conflict.

    Meshes, and the axes that a computation is manual on, keep them.
    """

    name = "sdy-remove-size-one-axes"
    anchor = "builtin.module"
    summary = "Removes axes of size one from shardings"

    def run(self, op: Any) -> bool:
        meshes = sdy.meshes(op)
        if not any(axis.size == 1 for mesh in meshes.values() for axis in mesh.axes):
            return False

        def without(sharding: TensorSharding) -> TensorSharding:
            ref = sharding.mesh_or_ref
            mesh = ref if isinstance(ref, Mesh) else meshes.get(ref)
            return sharding if mesh is None else _without_size_one_axes(sharding, mesh)

        transform_shardings(op, without)
        return True


def _without_size_one_axes(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    def kept(axes: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
        return tuple(axis for axis in axes if axis.size(mesh) != 1)

    def dimension(dim: DimensionSharding) -> DimensionSharding:
        axes = kept(dim.axes)
        # A closed dimension without axes takes no part in propagation, so it may not have a priority.
        priority = dim.priority if axes or not dim.is_closed else None
        return DimensionSharding(axes, dim.is_closed, priority)

    return replace(
        sharding,
        dim_shardings=tuple(map(dimension, sharding.dim_shardings)),
        replicated_axes=kept(sharding.replicated_axes),
        unreduced_axes=kept(sharding.unreduced_axes),
    )
