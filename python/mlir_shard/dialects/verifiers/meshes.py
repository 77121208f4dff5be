# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meshes that shardings on operations refer to."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow import ancestors
from mlir_shard.dialects.mesh_definitions import meshes_in
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.verify import MeshLookup


def find_mesh(sharding: TensorSharding, op: Any) -> Mesh | None:
    """Returns the mesh of a sharding on or in `op`, inlined or from the innermost module around it; None if unknown."""
    name = sharding.mesh_or_ref
    if isinstance(name, Mesh):
        return name
    module = next((around for around in ancestors(op) if around.name == "builtin.module"), None)
    return None if module is None else meshes_in(module).get(name)


def mesh_lookup(op: Any) -> MeshLookup:
    """Returns `find_mesh` for shardings on or in `op`, with a cache of the meshes."""
    known: dict[str | Mesh, Mesh | None] = {}

    def mesh_of(sharding: TensorSharding) -> Mesh | None:
        name = sharding.mesh_or_ref
        if name not in known:
            known[name] = find_mesh(sharding, op)
        return known[name]

    return mesh_of
