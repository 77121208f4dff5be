# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of manual computations, in whose bodies tensors are local along the manual axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mlir_shard.sharding.axes import AxisRef, axes_difference, total_size
from mlir_shard.sharding.collective import ManualAxes
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.tensor import DimensionSharding, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.verify.tensor import (
    MeshLookup,
    NoShape,
    Shape,
    check_tensor_sharding_per_value,
    value_name,
)


def common_mesh(meshes: Iterable[Mesh | None]) -> Mesh | None:
    """Returns the mesh that all given meshes are, ignoring empty and missing ones. None if they differ or all are None.

    If all of them are empty, this is the empty mesh.
    """
    common: Mesh | None = None
    for mesh in meshes:
        if mesh is None:
            continue
        if common is None or common.is_empty:
            common = mesh
        elif not mesh.is_empty and mesh != common:
            return None
    return common


def check_manual_values(
    shardings: TensorShardingPerValue,
    manual: ManualAxes,
    mesh_of: MeshLookup,
    global_shapes: Sequence[Shape],
    local_shapes: Sequence[Shape],
    *,
    kind: str,
    manual_axes: Collection[str] = (),
) -> str | None:
    """Checks that the in (or out) shardings fit the op's values, and the body's values have the local shapes.

    `kind` is "operand" or "result", and `manual_axes` are the manual axes of enclosing manual computations.
    """
    if not (global_shapes or local_shapes or len(shardings)):
        return None
    if violation := check_tensor_sharding_per_value(
        shardings, mesh_of, global_shapes, kind=kind, manual_axes=manual_axes
    ):
        return violation
    if len(global_shapes) != len(local_shapes):
        return f"the op has {len(global_shapes)} {kind}s, but its body has {len(local_shapes)}"
    for index, (sharding, whole, local) in enumerate(zip(shardings, global_shapes, local_shapes, strict=False)):
        mesh = mesh_of(sharding)
        if violation := _check_value(sharding, manual, mesh, whole, local):
            return f"{value_name(kind, index, len(global_shapes))}: {violation}"
    return None


def check_manual_axes(
    manual: ManualAxes,
    in_shardings: TensorShardingPerValue,
    out_shardings: TensorShardingPerValue,
    mesh_of: MeshLookup,
    *,
    manual_axes: Collection[str] = (),
) -> str | None:
    """Checks that the manual axes are distinct axes of the one mesh of all shardings, and not yet manual."""
    for index, name in enumerate(manual):
        if name in manual_axes:
            return f'axis "{name}" is already manual in an enclosing manual computation'
        if name in manual.value[:index]:
            return f'manual axis "{name}" is given twice'
    shardings = (*in_shardings, *out_shardings)
    if not shardings or not manual.value:
        return None
    mesh = common_mesh(map(mesh_of, shardings))
    if mesh is None:
        names = ", ".join(dict.fromkeys(sharding.mesh_text for sharding in shardings))
        return f"in and out shardings must be on the same mesh or an empty one, but are on {names}"
    for name in manual:
        if not mesh.has_axis(name):
            return f'unknown manual axis "{name}": it is not in the mesh {mesh}'
    return None


def check_manual_axes_spelled_out(
    manual: ManualAxes,
    in_shardings: TensorShardingPerValue,
    out_shardings: TensorShardingPerValue,
    mesh: Mesh,
) -> str | None:
    """Checks that manual axes are in mesh order and that each sharding uses or replicates all, as after normalization.

    Values that are not tensors have shardings of rank 0 without axes: the caller must leave them out.
    """
    ordered = sorted(manual, key=mesh.axis_index)
    if list(manual) != ordered:
        right = ", ".join(f'"{name}"' for name in ordered)
        return f"manual axes have to be in the order of the mesh, {{{right}}}"
    axes = [AxisRef(name) for name in manual]
    for kind, shardings in (("operand", in_shardings), ("result", out_shardings)):
        for index, sharding in enumerate(shardings):
            unused = axes_difference(axes, sharding.used_axes, mesh)
            if unused:
                name = value_name(kind, index, len(shardings))
                return f"{name}: manual axis {unused[0]} must shard a dimension or be replicated in {sharding}"
    return None


def _check_value(
    sharding: TensorSharding, manual: ManualAxes, mesh: Mesh | None, whole: Shape, local: Shape
) -> str | None:
    for dim, of in enumerate(sharding.dim_shardings):
        if violation := _check_manual_axes_first(of, manual):
            return f"dim {dim}: {violation}"
    if mesh is None or isinstance(whole, NoShape):
        return None
    # A sharding on a maximal mesh has no dimensions whatever the tensor has.
    dims = sharding.dim_shardings or (DimensionSharding((), is_closed=True),) * len(whole)
    expected: list[int | None] = []
    for dim, (size, of) in enumerate(zip(whole, dims, strict=True)):
        blocks = total_size((axis for axis in of.axes if axis.name in manual.value), mesh)
        if size is not None and size % blocks:
            return f"dim {dim}: size {size} cannot be divided evenly into {blocks} shards by the manual axes of {of}"
        expected.append(None if size is None else size // blocks)
    if isinstance(local, NoShape) or list(local) != expected:
        has = local.value if isinstance(local, NoShape) else f"the shape {_shape_text(local)}"
        return f"its counterpart in the body is {has}, but {sharding} requires {_shape_text(expected)}"
    return None


def _check_manual_axes_first(dim: DimensionSharding, manual: ManualAxes) -> str | None:
    free: AxisRef | None = None
    for axis in dim.axes:
        if axis.name not in manual.value:
            free = axis
        elif free is not None:
            return f"manual axis {axis} comes after the free axis {free} in {dim}, but manual axes must come first"
    return None


def _shape_text(shape: Sequence[int | None]) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"
