# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of axes, alone and in the lists that one sharding or collective has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.mesh import Mesh


def check_axis_ref(axis: AxisRef, mesh: Mesh) -> str | None:
    """The axis is in the mesh, and a sub-axis is a proper part that divides it."""
    if not mesh.has_axis(axis.name):
        names = ", ".join(f'"{name}"' for name in mesh.axis_names)
        return f'unknown axis "{axis.name}": the mesh has {names or "no axes"}'
    info = axis.sub_axis_info
    if info is None:
        return None
    full = mesh.axis_size(axis.name)
    if info.pre_size < 1:
        return f"sub-axis {axis} has pre-size {info.pre_size}, but a pre-size is at least 1"
    if info.size < 2:
        return f"sub-axis {axis} has size {info.size}, but a sub-axis has at least size 2"
    if full % info.next_pre_size:
        return (
            f"sub-axis {axis} does not fit its axis: pre-size times size is {info.next_pre_size}, "
            f'which does not divide {full}, the size of "{axis.name}"'
        )
    if info.size == full:
        return f'sub-axis {axis} is all of its axis, which is written "{axis.name}"'
    return None


def check_axis_lists(lists: Sequence[tuple[str, Sequence[AxisRef]]], mesh: Mesh) -> str | None:
    """Each axis of each list is valid, none is used twice, no two overlap, and neighbours that can merge are merged.

    `lists` gives each list with what to call it in a message ("dim 0", "replicated axes").
    """
    used: list[tuple[str, AxisRef]] = []
    for where, axes in lists:
        for axis in axes:
            if violation := check_axis_ref(axis, mesh):
                return f"{where}: {violation}"
        for axis, following in pairwise(axes):
            if axis.can_merge(following):
                merged = axis.merge(following, mesh)
                return f"{where}: {axis} and {following} follow each other and have to be merged to {merged}"
        used += [(where, axis) for axis in axes]
    for (first_where, first), (where, axis) in combinations(used, 2):
        if first.name == axis.name and (violation := _check_pair(first, first_where, axis, where)):
            return f"{where}: {violation}"
    return None


def check_mesh_order(where: str, axes: Sequence[AxisRef], mesh: Mesh) -> str | None:
    """The axes, all of them in the mesh, are in mesh order."""
    ordered = sorted(axes, key=lambda axis: axis.mesh_order_key(mesh))
    if list(axes) != ordered:
        return f"{where} have to be in the order of the mesh, {{{', '.join(map(str, ordered))}}}"
    return None


def _check_pair(first: AxisRef, first_where: str, axis: AxisRef, where: str) -> str | None:
    place = "" if first_where == where else f" in {first_where}"
    if first == axis:
        return f"axis {axis} is used twice" if not place else f"axis {axis} is already used{place}"
    if first.overlaps(axis):
        return f"axis {axis} overlaps {first}{place}"
    if not first.can_coexist(axis):
        return f"sub-axes {first}{place} and {axis} are not parts of one split of their axis"
    return None
