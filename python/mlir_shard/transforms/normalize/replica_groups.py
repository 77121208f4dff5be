# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The StableHLO collectives of a module, whose groups of devices may name a mesh."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.replica_groups import REPLICA_GROUPS, mesh_or_ref_of, set_mesh_or_ref
from mlir_shard.transforms.operations import operations_named

_COLLECTIVES = (
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.cross-replica-sum",
    "stablehlo.reduce_scatter",
)


def collectives(root: Any) -> list[Any]:
    """The StableHLO operations below `root` that have replica groups, in the order of the text."""
    return [op for op in operations_named(root, *_COLLECTIVES) if REPLICA_GROUPS in op.attributes]


def inline_meshes(module: Any) -> None:
    """Has groups along axes of a mesh that the module defines say themselves what that mesh is."""
    meshes = sdy.meshes(module)
    for collective in collectives(module):
        ref = mesh_or_ref_of(collective)
        if isinstance(ref, str) and ref in meshes:
            set_mesh_or_ref(collective, meshes[ref])
