# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of meshes, axes and shardings of tensors.

A sharding is checked against its mesh, its type and the manual computations around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from functools import lru_cache
from itertools import combinations, pairwise

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.mesh import Mesh, MeshAxis
from mlir_shard.sharding.tensor import DimensionSharding, TensorSharding, TensorShardingPerValue


def check_axis_ref(axis: AxisRef, mesh: Mesh) -> str | None:
    """Checks that the axis is in the mesh, and that a sub-axis is a proper part that divides the full axis."""
    if not mesh.has_axis(axis.name):
        names = ", ".join(f'"{name}"' for name in mesh.axis_names)
        return f'unknown axis "{axis.name}": the mesh has {names or "no axes"}'
    info = axis.sub_axis_info
    if info is None:
        return None
    full = mesh.axis_size(axis.name)
    if info.pre_size < 1:
        return f"sub-axis {axis} has pre-size {info.pre_size}, but a pre-size must be at least 1"
    if info.size < 2:
        return f"sub-axis {axis} has size {info.size}, but a sub-axis must have at least size 2"
    if full % info.next_pre_size:
        return (
            f"sub-axis {axis} does not fit its axis: pre-size times size is {info.next_pre_size}, "
            f'which does not divide {full}, the size of "{axis.name}"'
        )
    if info.size == full:
        return f'sub-axis {axis} covers its entire axis and must be written as "{axis.name}"'
    return None


def check_axis_lists(lists: Sequence[tuple[str, Sequence[AxisRef]]], mesh: Mesh) -> str | None:
    """Checks that the axes of all lists are valid and do not overlap, and neighbours that can be merged are merged.

    `lists` has each list with its name in messages ("dim 0", "replicated axes").
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
    """Checks that the axes, all of which are in the mesh, are in mesh order."""
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


def check_mesh_axis(axis: MeshAxis) -> str | None:
    """Checks that an axis has at least one device."""
    if axis.size < 1:
        return f'mesh axis "{axis.name}" has size {axis.size}, but an axis must have at least size 1'
    return None


@lru_cache(maxsize=1024)
def check_mesh(mesh: Mesh) -> str | None:
    """Checks that axes are valid and have distinct names, and that device ids, if any, are distinct, one per device.

    Whether the ids are 0, 1, 2, ... in some order depends on the other meshes too, see `check_device_numbers`.
    """
    for axis in mesh.axes:
        if violation := check_mesh_axis(axis):
            return violation
    for device in mesh.device_ids:
        if device < 0:
            return f"device id {device} is negative"
    if not mesh.axes:
        if len(mesh.device_ids) > 1:
            return f"a mesh without axes must have at most one device id, but {len(mesh.device_ids)} are given"
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
    device, count = Counter(mesh.device_ids).most_common(1)[0]
    if count > 1:
        return f"device id {device} is given {count} times"
    return None


def check_device_numbers(mesh: Mesh, others: Iterable[Mesh] = ()) -> str | None:
    """Checks that the devices of all meshes of a program, of which `mesh` is one, are 0, 1, 2, ... without a gap."""
    if not mesh.axes or not mesh.device_ids:
        return None
    devices, most = set(mesh.device_ids), max(mesh.device_ids)
    if most < len(devices):
        return None
    in_order = 0
    for other in others:
        if other.axes and not other.device_ids:
            in_order = max(in_order, other.total_size)
        elif other.axes:
            devices.update(other.device_ids)
    missing = next((device for device in range(in_order, max(devices)) if device not in devices), None)
    if missing is None:
        return None
    return (
        f"device ids have to be 0 to {max(devices)}, together with those of the other meshes of the program, but "
        f"{missing} is not among them"
    )


class NoShape(Enum):
    """The kinds of values without a ranked shape. The text of each ends a sentence of a message."""

    NOT_SHAPED = "a value that is not a tensor"
    UNRANKED = "a tensor without a rank"
    NO_VALUE = "an op without results"


Shape = Sequence[int | None] | NoShape
"""The sizes of a ranked tensor, None for dynamic ones, or the reason for missing sizes."""
MeshLookup = Callable[[TensorSharding], Mesh | None]
"""The mesh that a sharding is bound to, None if its name is unknown."""


def check_tensor_sharding(
    sharding: TensorSharding,
    mesh: Mesh | None,
    shape: Shape,
    *,
    manual_axes: Collection[str] = (),
    divisible: bool = False,
) -> str | None:
    """Checks all invariants of a sharding on a value.

    `mesh` is the mesh that the sharding is bound to, None if it is unknown. `manual_axes` are the names of the manual
    axes of enclosing manual computations. With `divisible`, shards have to be even; otherwise the last may be short.
    """
    if mesh is None:
        return f"unknown mesh {sharding.mesh_text}"
    if mesh.is_maximal:
        return _check_nothing_sharded(sharding, f"a sharding on one device ({sharding.mesh_text})")
    if isinstance(shape, NoShape):
        if shape is NoShape.UNRANKED:
            return f"a sharding requires a tensor with a rank, but is on {shape.value}"
        return _check_nothing_sharded(sharding, f"the sharding of {shape.value}")
    if sharding.rank != len(shape):
        return f"the sharding has {sharding.rank} dimensions, but the tensor has {len(shape)}"
    return (
        _check_priorities(sharding)
        or _check_axes(sharding, mesh)
        or (_check_divisible(sharding, mesh, shape) if divisible else None)
        or check_free_of_manual_axes(sharding, manual_axes)
    )


def check_tensor_sharding_per_value(
    shardings: TensorShardingPerValue,
    mesh_of: MeshLookup,
    shapes: Sequence[Shape],
    *,
    kind: str = "result",
    manual_axes: Collection[str] = (),
) -> str | None:
    """Checks that there is one valid sharding for each value; `kind` is the kind of the values ("operand", "result").

    An op without values may have one sharding with nothing sharded, which names the device that the op runs on.
    """
    expected: Sequence[Shape] = shapes
    if not shapes and len(shardings) == 1 and _says_device_alone(shardings.shardings[0], mesh_of):
        expected = (NoShape.NO_VALUE,)
    if len(shardings) != len(expected):
        return f"{len(shardings)} shardings are given for {len(shapes)} {kind}s, but each must have one"
    for index, (sharding, shape) in enumerate(zip(shardings, expected, strict=True)):
        violation = check_tensor_sharding(sharding, mesh_of(sharding), shape, manual_axes=manual_axes)
        if violation:
            return f"{value_name(kind, index, len(shapes))}: {violation}"
    return None


def check_free_of_manual_axes(sharding: TensorSharding, manual_axes: Collection[str]) -> str | None:
    """Checks that a sharding inside manual computations does not use or replicate their manual axes."""
    for axis in sharding.used_axes:
        if axis.name in manual_axes:
            return (
                f'axis "{axis.name}" is already manual in an enclosing manual computation, so only other axes are free'
            )
    return None


def value_name(kind: str, index: int, count: int) -> str:
    """Returns the name of one of `count` values in a message, which has its number if there are several."""
    return f"{kind} {index}" if count > 1 else kind


def _says_device_alone(sharding: TensorSharding, mesh_of: MeshLookup) -> bool:
    mesh = mesh_of(sharding)
    return sharding.is_fully_replicated or (mesh is not None and mesh.is_maximal)


def _check_nothing_sharded(sharding: TensorSharding, what: str) -> str | None:
    if sharding.rank or sharding.replicated_axes or sharding.unreduced_axes:
        return f"{what} has rank 0 and no replicated or unreduced axes, but is {sharding}"
    return None


def _check_priorities(sharding: TensorSharding) -> str | None:
    for dim, of in enumerate(sharding.dim_shardings):
        if violation := _check_priority(of):
            return f"dim {dim}: {violation}"
    return None


def _check_priority(dim: DimensionSharding) -> str | None:
    if dim.priority is None:
        return None
    if dim.priority < 0:
        return f"priority {dim.priority} is negative"
    if dim.is_closed and not dim.axes:
        return f"priority p{dim.priority} has no effect on a closed dimension without axes"
    return None


@lru_cache(maxsize=1 << 14)
def _check_axes(sharding: TensorSharding, mesh: Mesh) -> str | None:
    lists = [(f"dim {dim}", of.axes) for dim, of in enumerate(sharding.dim_shardings)]
    sets = [("replicated axes", sharding.replicated_axes), ("unreduced axes", sharding.unreduced_axes)]
    if violation := check_axis_lists(lists + sets, mesh):
        return violation
    for where, axes in sets:
        if violation := check_mesh_order(where, axes, mesh):
            return violation
    return None


def _check_divisible(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int | None]) -> str | None:
    for dim, (size, of) in enumerate(zip(shape, sharding.dim_shardings, strict=True)):
        blocks = of.sharded_size(mesh)
        if size is not None and size % blocks:
            return f"dim {dim}: size {size} cannot be divided evenly into {blocks} shards by {of}"
    return None
