# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Separate meshes for sub-axes that cannot be parts of one split of an axis, as "z":(1)4 and "z":(1)6 of 12 devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations, count
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.axes import split_mesh_axes
from mlir_shard.sharding.common_mesh import MeshChange, parts_by_axis
from mlir_shard.sharding.mesh import MeshAxis
from mlir_shard.transforms.normalize.axes_of_ops import axes_in, change_axes, ops_with_axes, shardings_within
from mlir_shard.transforms.shardings import transform_shardings


def separate_sub_axes(module: Any, shardings: Iterable[TensorSharding]) -> bool:
    """Moves shardings whose sub-axes cannot coexist to meshes of the same devices; returns whether any moved.

    `shardings` are those in the module. The axes of each new mesh are those of the old one, split as its shardings
    need. Shardings of one operation that lists axes stay on one mesh; if these cannot coexist, all shardings on the
    mesh stay.
    """
    meshes = sdy.meshes(module)
    mesh_by_sharding = {one: mesh for one in shardings if (mesh := mesh_of(one, meshes)) is not None}
    by_mesh = defaultdict(list)
    for sharding, mesh in mesh_by_sharding.items():
        by_mesh[mesh].append(sharding)
    conflicting = {mesh: found for mesh, found in by_mesh.items() if not _coexist(_axes(found))}
    if not conflicting:
        return False
    named = list(ops_with_axes(module))
    changes: dict[TensorSharding, MeshChange] = {}
    for mesh, found in conflicting.items():
        groups = [(frozenset((one,)), frozenset(one.used_axes)) for one in found]
        for op, sharding in named:
            if mesh_by_sharding.get(sharding) == mesh:
                _join(groups, _shardings_at(op).intersection(found), axes_in(op))
        for family in _families(groups)[1:]:
            axes = _axes(family)
            changes |= dict.fromkeys(family, MeshChange(_split(mesh, axes), parts_by_axis(mesh)))
    for op, sharding in named:
        if sharding in changes:
            change_axes(op, changes[sharding])
    transform_shardings(module, lambda one: changes[one].sharding(one, changes[one].mesh) if one in changes else one)
    return bool(changes)


_Group = tuple[frozenset[TensorSharding], frozenset[AxisRef]]
"""Shardings that stay on one mesh, and the axes that this mesh must have."""


def _axes(shardings: Iterable[TensorSharding]) -> frozenset[AxisRef]:
    return frozenset(axis for sharding in shardings for axis in sharding.used_axes)


def _coexist(axes: Iterable[AxisRef]) -> bool:
    return all(one.can_coexist(other) for one, other in combinations(axes, 2))


def _shardings_at(op: Any) -> set[TensorSharding]:
    """Returns the shardings of the operands of an operation, and those on it and on the operations in its regions."""
    found = {sharding for value in op.operands if (sharding := sharding_of(value)) is not None}
    for _, _, value in shardings_within(op):
        found.update(value.shardings if isinstance(value, TensorShardingPerValue) else (value,))
    return found


def _join(groups: list[_Group], shardings: set[TensorSharding], axes: Iterable[AxisRef]) -> None:
    """Merges the groups of some shardings, and adds `axes` to the merged group."""
    joined = [group for group in groups if group[0] & shardings]
    groups[:] = [group for group in groups if group not in joined]
    groups.append((frozenset().union(*(one for one, _ in joined)), frozenset(axes).union(*(one for _, one in joined))))


def _families(groups: Iterable[_Group]) -> list[list[TensorSharding]]:
    """Returns the shardings by mesh, of which the first stays; an empty list if the axes of a group cannot coexist."""
    families: list[tuple[list[TensorSharding], set[AxisRef]]] = []
    for shardings, axes in groups:
        if not _coexist(axes):
            return []
        for family, present in families:
            if _coexist(present | axes):
                family += shardings
                present |= axes
                break
        else:
            families.append(([*shardings], {*axes}))
    return [family for family, _ in families]


def _split(mesh: Mesh, axes: Iterable[AxisRef]) -> Mesh:
    """Returns the mesh of the same devices whose axes are the parts that the sub-axes split `mesh` into."""
    names = set(mesh.axis_names)
    found = []
    for atom in split_mesh_axes(axes, mesh):
        name = atom.name
        if atom.sub_axis_info is not None:
            name = next(one for number in count() if (one := f"{atom.name}_{number}") not in names)
            names.add(name)
        found.append(MeshAxis(name, atom.size(mesh)))
    return Mesh(tuple(found), mesh.device_ids)
