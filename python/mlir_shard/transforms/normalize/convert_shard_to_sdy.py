# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts upstream's sharding annotations, `shard.grid`, `shard.sharding` and `shard.shard`, to those of sdy."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import children, operations_named, operations_where
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import ModulePass, PassFailure, register
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.transforms.normalize.convert_sdy_to_shard import offsets_of_blocks


def _is_of_shard(name: str) -> bool:
    return name.startswith("shard.")


@register
class ConvertShardToSdy(ModulePass):
    """Replaces each `shard.grid` by a mesh, and annotations by closed shardings. The axes of a mesh are named `axis_0`,
    `axis_1`, ... or as in the grid's attribute `mlir_shard.axis_names`.

    A `shard.shard` that annotates the value itself becomes the sharding attribute of that argument or operation. One
    that annotates for users becomes a `sdy.sharding_constraint`, or is erased if the value has the same sharding. If a
    function returns the result of a `shard.shard`, the function's result gets its sharding as well. Halo sizes, offsets
    that differ from those of sdy's shards, dynamic grids and shardings that other operations use are rejected.
    """

    name = "convert-shard-to-sdy"
    summary = "Converts upstream's shard annotations to sdy meshes and shardings"
    needs = staticmethod(_is_of_shard)

    def run(self, op: Any) -> bool:
        grids = {}
        for grid in children(op, "shard.grid"):
            mesh = grids[grid.attributes["sym_name"].value] = _mesh(grid)
            with ir.InsertionPoint(grid), grid.location:
                attributes = {"sym_name": grid.attributes["sym_name"], "mesh": sdy.attribute(mesh)}
                ir.Operation.create("sdy.mesh", attributes=attributes)
            grid.erase()
        annotations, shardings = operations_named(op, "shard.shard"), operations_named(op, "shard.sharding")
        for annotation in annotations:
            _convert(annotation, grids)
            annotation.erase()
        for sharding in shardings:
            if not list(sharding.results[0].uses):
                sharding.erase()
        _reject_leftovers(op)
        return bool(grids or annotations or shardings)


def _mesh(grid: Any) -> Mesh:
    shape = shard.grid_shape(grid)
    if any(size < 1 for size in shape):
        raise PassFailure("a 'shard.grid' with a dynamic size cannot become an sdy mesh, which has static sizes", grid)
    return Mesh(zip(_axis_names(grid, len(shape)), shape, strict=True))


def _axis_names(grid: Any, rank: int) -> list[str]:
    if shard.AXIS_NAMES not in grid.attributes:
        return [f"axis_{index}" for index in range(rank)]
    given = grid.attributes[shard.AXIS_NAMES]
    names = [name.value for name in given if isinstance(name, ir.StringAttr)] if isinstance(given, ir.ArrayAttr) else []
    if len(set(names)) != rank or len(given) != rank or not all(names):
        raise PassFailure(f"'{shard.AXIS_NAMES}' must be {rank} different names, one for each axis of the grid", grid)
    return names


def _convert(annotation: Any, grids: dict[str, Mesh]) -> None:
    source, result = annotation.operands[0], annotation.results[0]
    sharding = _sharding(annotation, grids)
    for use in result.uses:
        if use.owner.operation.name == "func.return":
            _set_result_sharding(annotation, use, sharding)
    if "annotate_for_users" not in annotation.attributes and _holds_sharding(source):
        _set_sharding(annotation, source, sharding)
    if sdy.get_sharding(source) == sharding:
        result.replace_all_uses_with(source)
        return
    with ir.InsertionPoint(annotation), annotation.location:
        attributes = {"sharding": sdy.attribute(sharding)}
        constraint = ir.Operation.create("sdy.sharding_constraint", [result.type], [source], attributes)
    result.replace_all_uses_with(constraint.results[0])


def _sharding(annotation: Any, grids: dict[str, Mesh]) -> TensorSharding:
    op = defining_op(annotation.operands[1], "shard.sharding")
    if op is None:
        raise PassFailure("the sharding of a 'shard.shard' must be defined by a 'shard.sharding'", annotation)
    if len(op.attributes["static_halo_sizes"]):
        raise PassFailure("'halo_sizes' cannot be expressed in sdy, whose shards do not overlap", op)
    name = op.attributes["grid"].value
    if name not in grids:
        raise PassFailure(f"the grid @{name} is not defined by a top-level 'shard.grid' of the module", op)
    type_ = annotation.results[0].type
    sharding = _closed_sharding(op, type_.rank, name, grids[name])
    _check_offsets(op, type_, [dim.sharded_size(grids[name]) if dim.axes else None for dim in sharding.dim_shardings])
    return sharding


def _check_offsets(op: Any, type_: Any, blocks: list[int | None]) -> None:
    offsets = tuple(elements(op.attributes["static_sharded_dims_offsets"]))
    if not offsets:
        return
    if ir.ShapedType.get_dynamic_size() in (*offsets, *type_.shape):
        raise PassFailure(
            "dynamic 'sharded_dims_offsets' cannot be expressed in sdy, whose shards have n / k elements, rounded up",
            op,
        )
    expected = offsets_of_blocks(type_.shape, blocks)
    if offsets != expected:
        raise PassFailure(
            f"'sharded_dims_offsets' cannot be expressed in sdy, which shards {type_} at {list(expected)}, into n / "
            "k elements, rounded up",
            op,
        )


def _closed_sharding(op: Any, rank: int, name: str, mesh: Mesh) -> TensorSharding:
    axes_per_dim = shard.split_axes(op)
    if any(axes_per_dim[rank:]):
        raise PassFailure(f"split_axes shards {len(axes_per_dim)} dimensions, but the tensor has {rank}", op)
    used = [axis for axes in axes_per_dim for axis in axes]
    for axis in used:
        if not 0 <= axis < len(mesh.axes):
            raise PassFailure(f"split_axes names grid axis {axis}, but @{name} has axes 0 to {len(mesh.axes) - 1}", op)
        if used.count(axis) > 1:
            raise PassFailure(
                f"split_axes names grid axis {axis} twice: an axis can shard only one dimension, and only once", op
            )
    padded = [*axes_per_dim[:rank], *[()] * (rank - len(axes_per_dim))]
    refs = ([AxisRef(mesh.axes[axis].name) for axis in axes] for axes in padded)
    return TensorSharding.closed_with(refs, name)


def _holds_sharding(value: Any) -> bool:
    """Returns whether a value can have a sharding: an argument of a function, or a result of an op outside of sdy."""
    if isinstance(value.owner, ir.Block):
        return value.owner.owner.operation.name == "func.func"
    return not value.owner.operation.name.startswith("sdy.")


def _set_sharding(annotation: Any, value: Any, sharding: TensorSharding) -> None:
    known = sdy.get_sharding(value)
    if known is not None and known != sharding:
        raise PassFailure(
            f"this annotation shards as {sharding} a value that is already sharded as {known}: use "
            "annotate_for_users to reshard it for its users",
            annotation,
        )
    sdy.set_sharding(value, sharding)


def _set_result_sharding(annotation: Any, use: Any, sharding: TensorSharding) -> None:
    function, index = use.owner.operation.parent.operation, use.operand_number
    known = sdy.get_result_sharding(function, index)
    if known is not None and known != sharding:
        raise PassFailure(
            f"this annotation shards result {index} of the function as {sharding}, but it is already sharded as "
            f"{known}",
            annotation,
        )
    sdy.set_result_sharding(function, index, sharding)


def _reject_leftovers(module: Any) -> None:
    for op in operations_where(module, _is_of_shard):
        raise PassFailure(f"'{op.name}' has no counterpart in sdy: only annotations are converted", op)
