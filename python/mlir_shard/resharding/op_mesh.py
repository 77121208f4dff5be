# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mesh on which an op computes, where its tensors may come in different orders of the same devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mlir_shard.sharding import Mesh, TensorSharding

MeshAndRef = tuple[str | Mesh, Mesh]


def mesh_of(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> Mesh | None:
    """The mesh of a sharding, looked up where it is a name; None where there is none of this name."""
    ref = sharding.mesh_or_ref
    return ref if isinstance(ref, Mesh) else meshes.get(ref)


def is_on_one_device(sharding: TensorSharding | None, meshes: Mapping[str, Mesh]) -> bool:
    """Whether the sharding is one on a maximal mesh."""
    mesh = None if sharding is None else mesh_of(sharding, meshes)
    return mesh is not None and mesh.is_maximal


def op_mesh(shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]) -> MeshAndRef | None:
    """The mesh that most of the tensors that are sharded have, with how they refer to it.

    The meshes have to be equal but for the order of devices; the empty mesh goes with any other. None where they are
    not, where one is maximal or unknown, and where no tensor has a sharding. Where nothing is sharded it is a mesh
    without device ids, if there is one.
    """
    common = _common_mesh(shardings, meshes)
    if common is None or common[1].is_maximal:
        return None
    best, most = common, 0
    counts: Counter[str | Mesh] = Counter()
    for sharding in shardings:
        if sharding is None or sharding.is_fully_replicated:
            continue
        counts[sharding.mesh_or_ref] += 1
        mesh = mesh_of(sharding, meshes)
        if mesh is not None and counts[sharding.mesh_or_ref] > most:
            best, most = (sharding.mesh_or_ref, mesh), counts[sharding.mesh_or_ref]
    return best


def _common_mesh(shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]) -> MeshAndRef | None:
    common: MeshAndRef | None = None
    for sharding in shardings:
        if sharding is None:
            continue
        mesh = mesh_of(sharding, meshes)
        if mesh is None:
            return None
        if common is None or common[1].is_empty:
            common = (sharding.mesh_or_ref, mesh)
        elif mesh.is_empty:
            continue
        elif not mesh.equals(common[1], ignore_device_ids=True):
            return None
        elif not mesh.device_ids:
            common = (sharding.mesh_or_ref, mesh)
    return common
