# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program without a word about how it is sharded."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.ir import replica_groups
from mlir_shard.ir.editing import operations_named, remove_attributes
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.shardings import Side, set_shardings, shardings_of


@register
class DropShardingAndMesh(Pass):
    """Removes the attribute `sdy.sharding` from all operations, arguments and results, and the definitions of meshes.

    Operations of the sdy dialect keep the shardings in attributes of their own. Replica groups along axes of a mesh say
    themselves what it is.
    """

    name = "sdy-drop-sharding-and-mesh"
    anchor = "builtin.module"
    summary = "Removes meshes, and shardings from everything but operations of sdy"

    def run(self, op: Any) -> None:
        remove_attributes(op, sdy.SHARDING)
        for function in operations_named(op, "func.func"):
            for side in Side:
                set_shardings(function, side, [None] * len(shardings_of(function, side)))
        replica_groups.inline_meshes(op)
        for mesh in operations_named(op, "sdy.mesh"):
            mesh.erase()
