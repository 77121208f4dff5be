# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Questions that several stages ask about the shardings around an op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.limits import check_devices


def meshes_around(op: Any) -> dict[str, Mesh]:
    """The meshes of the module that `op` is in, by name; PassFailure where one has too many devices to list."""
    module = sdy.enclosing_module(op)
    meshes = sdy.meshes(module)
    check_devices(module, meshes)
    return meshes


def common_mesh(
    shardings: Iterable[TensorSharding | None], meshes: Mapping[str, Mesh]
) -> tuple[str | Mesh, Mesh] | None:
    """The one mesh that shardings refer to, with how they do; None where there is none, several or a maximal one.

    Missing shardings and the empty mesh go with any other.
    """
    common: tuple[str | Mesh, Mesh] | None = None
    for sharding in shardings:
        if sharding is None:
            continue
        ref = sharding.mesh_or_ref
        mesh = ref if isinstance(ref, Mesh) else meshes.get(ref)
        if mesh is None or mesh.is_maximal:
            return None
        if common is None or common[1].is_empty:
            common = (ref, mesh)
        elif not mesh.is_empty and mesh != common[1]:
            return None
    return common
