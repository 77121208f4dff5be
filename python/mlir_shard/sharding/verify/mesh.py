# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of meshes."""

from __future__ import annotations

from collections import Counter

from mlir_shard.sharding.mesh import Mesh, MeshAxis


def check_mesh_axis(axis: MeshAxis) -> str | None:
    """An axis has at least one device."""
    if axis.size < 1:
        return f'mesh axis "{axis.name}" has size {axis.size}, but an axis has at least size 1'
    return None


def check_mesh(mesh: Mesh) -> str | None:
    """Axes are valid and have different names, and device ids, if any, are a reordering of 0, 1, 2, ..."""
    for axis in mesh.axes:
        if violation := check_mesh_axis(axis):
            return violation
    for device in mesh.device_ids:
        if device < 0:
            return f"device id {device} is negative"
    if not mesh.axes:
        if len(mesh.device_ids) > 1:
            return f"a mesh without axes has at most one device id, but {len(mesh.device_ids)} are given"
        return None
    for name, count in Counter(mesh.axis_names).items():
        if count > 1:
            return f'mesh axis "{name}" is given {count} times'
    return _check_device_ids(mesh)


def _check_device_ids(mesh: Mesh) -> str | None:
    total = mesh.total_size
    if not mesh.device_ids:
        return None
    if len(mesh.device_ids) != total:
        return f"the axes make {total} devices, but {len(mesh.device_ids)} device ids are given"
    missing = sorted(set(range(total)) - set(mesh.device_ids))
    if missing:
        return f"device ids have to be 0 to {total - 1} in some order, each once, but {missing[0]} is not among them"
    return None
