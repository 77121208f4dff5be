# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings that hold their mesh themselves, so that the symbols of meshes can go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.normalize import replica_groups
from mlir_shard.transforms.sharding_attributes import transform_shardings


@register
class InlineMeshes(Pass):
    """Puts the mesh in place of its symbol in every sharding and in the replica groups of StableHLO's collectives, and
    erases the `sdy.mesh` operations."""

    name = "sdy-inline-meshes"
    anchor = "builtin.module"
    summary = "Inlines meshes in shardings and erases their definitions"

    def run(self, op: Any) -> None:
        meshes = sdy.meshes(op)
        if not meshes:
            return

        def inlined(sharding: TensorSharding) -> TensorSharding:
            ref = sharding.mesh_or_ref
            return replace(sharding, mesh_or_ref=meshes[ref]) if isinstance(ref, str) and ref in meshes else sharding

        transform_shardings(op, inlined)
        replica_groups.inline_meshes(op)
        for inner in list(op.regions[0].blocks[0].operations):
            if inner.operation.name == "sdy.mesh":
                inner.operation.erase()
