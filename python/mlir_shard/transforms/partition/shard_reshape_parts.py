# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Concatenations and slices of equal parts of a sharded dimension, as ops on a dimension of parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.values import has_one_use, users
from mlir_shard.passes.registry import Pass, register
from mlir_shard.resharding.operator.reshape import reshape_groups
from mlir_shard.rules.partition import shards_along
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes, total_size
from mlir_shard.transforms.dead_code import erase_dead_code
from mlir_shard.transforms.partition.products_of_parts import Parts, parts_of, users_of_parts
from mlir_shard.transforms.partition.sharded_pieces import ShardedValue
from mlir_shard.transforms.shardings import sharding_and_mesh

_CONCATENATE, _SLICE, _RESHAPE = "stablehlo.concatenate", "stablehlo.slice", "stablehlo.reshape"


@register
class ReshapeParts(Pass):
    """Rewrites concatenations and slices of equal parts of a sharded dimension with a dimension of parts.

    `jnp.split(x, 2)` takes both halves of a dimension. If each half is sharded along the axes of the dimension, most
    elements move to other devices, but each device needs only as many as it has. The dimension is reshaped to one of
    parts, which is not sharded, and one of the elements of a part, which is sharded; the slices are along the dimension
    of parts. The reshape needs one reshard, in which a device receives at most the size of its shard. Without it, each
    slice would be made of gathered shards. A concatenation of tensors of one shape is rewritten in the opposite order.

    If the tensor is a product of activations with a weight that has fewer bytes, the weight is reshaped instead:
    `x @ w` is computed with the parts of `w`, also if the sum with a bias or with another product is split. In the
    gradient, a concatenation is an operand of products, which are computed on its parts. This also applies to reshapes
    that split a product into parts, and to those that merge the parts of an operand.

    Slices are rewritten if they take at least half of the tensor. All shards have to be even. Unless a weight is
    reshaped, the number of parts has to divide the number of shards, or be a multiple of it.
    """

    name = "shard-reshape-parts"
    anchor = "func.func"
    summary = "Computes concatenations and slices of equal parts of sharded dimensions by reshapes"
    needs = (_CONCATENATE, _SLICE, _RESHAPE)

    def run(self, op: Any) -> bool:
        meshes = sdy.meshes(op)
        changed = False
        for one, count in OpKinds(op, _CONCATENATE).decided(_equal_parts):
            changed |= _join(one, count, meshes)
        slices: dict[tuple[Any, _Part], list[tuple[Any, int]]] = {}
        for one, (part, number) in OpKinds(op, _SLICE).decided(_part):
            slices.setdefault((one.operands[0], part), []).append((one, number))
        for (tensor, part), taken in slices.items():
            changed |= _split(tensor, part, taken, meshes)
        for one, reshaped in OpKinds(op, _RESHAPE).decided(_reshaped_parts):
            changed |= _reshape(one, reshaped, meshes)
        if changed:
            erase_dead_code(op)
        return changed


def _are_even(parts: int, size: int, before: Axes, after: Axes, mesh: Mesh) -> bool:
    """Returns whether a dimension and its parts, of `size` elements each, are sharded evenly."""
    shards, shards_of_part = total_size(before, mesh), total_size(after, mesh)
    return size * parts % shards == 0 and size % shards_of_part == 0 and shards > 1 and shards_of_part > 1


def _are_regular(parts: int, before: Axes, mesh: Mesh) -> bool:
    """Returns whether a reshape can keep the shards of a dimension that it splits into parts."""
    shards = total_size(before, mesh)
    return shards % parts == 0 or parts % shards == 0


def _equal_parts(op: Any) -> int | None:
    """Returns the number of operands of a concatenation of tensors of one shape along a sharded dimension, or None."""
    types = {operand.type for operand in op.operands}
    is_split = shards_along(op.results[0], op.attributes["dimension"].value, op) > 1
    return len(op.operands) if len(op.operands) > 1 and len(types) == 1 and is_split and has_static_shapes(op) else None


def _join(op: Any, count: int, meshes: Mapping[str, Mesh]) -> bool:
    """Rewrites a concatenation of `count` equal parts; returns whether it did."""
    dim, (result,) = op.attributes["dimension"].value, op.results
    found = sharding_and_mesh(result, meshes)
    if found is None or found[0].unreduced_axes:
        return False
    sharding, mesh = found
    of_part = _common_axes(op.operands, dim, sharding)
    of_result, size = sharding.dim_shardings[dim].axes, op.operands[0].type.shape[dim]
    if of_part is None or not _are_even(count, size, of_result, of_part, mesh):
        return False
    used = users_of_parts(result, dim, Parts(count, of_result, of_part, mesh))
    if used is None and not _are_regular(count, of_result, mesh):
        return False
    with ir.InsertionPoint(op), op.location:
        parts = [ShardedValue.of(one, sharding.mesh_or_ref).with_parts(dim, 1, of_part) for one in op.operands]
        value = stablehlo.concatenate([one.value for one in parts], dim, parts[0].sharding)
    if used is not None:
        for one in used:
            one.replace(value)
        op.erase()
        return True
    with ir.InsertionPoint(op), op.location:
        value = stablehlo.build("reshape", result.type, value, sharding=sharding)
    result.replace_all_uses_with(value)
    op.erase()
    return True


def _common_axes(values: Iterable[Any], dim: int, other: TensorSharding) -> Axes | None:
    """Returns the axes of a dimension of all values; None if they differ, or if one is on another mesh than `other`."""
    shardings = [sharding_of(value) for value in values]
    found = {
        None
        if one is None or one.mesh_or_ref != other.mesh_or_ref or one.unreduced_axes
        else one.dim_shardings[dim].axes
        for one in shardings
    }
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class _Part:
    """One of `count` equal parts of a dimension."""

    dim: int
    count: int


def _part(op: Any) -> tuple[_Part, int] | None:
    """Returns the part that a slice takes of a dimension, and its number; None if it is another one, or not sharded."""
    if not has_static_shapes(op):
        return None
    shape, part = op.operands[0].type.shape, op.results[0].type.shape
    cut = [dim for dim, size in enumerate(shape) if size != part[dim]]
    if len(cut) != 1 or not part[cut[0]] or shards_along(op.results[0], cut[0], op) == 1:
        return None
    (dim,) = cut
    start = op.attributes["start_indices"][dim]
    if set(elements(op.attributes["strides"])) != {1} or shape[dim] % part[dim] or start % part[dim]:
        return None
    return _Part(dim, shape[dim] // part[dim]), start // part[dim]


def _split(tensor: Any, part: _Part, slices: Sequence[tuple[Any, int]], meshes: Mapping[str, Mesh]) -> bool:
    """Rewrites slices that take parts of a tensor, each with the number of its part; returns whether it did."""
    found = sharding_and_mesh(tensor, meshes)
    if found is None or found[0].unreduced_axes or 2 * len({number for _, number in slices}) < part.count:
        return False
    sharding, mesh = found
    of_part = _common_axes((op.results[0] for op, _ in slices), part.dim, sharding)
    of_tensor, size = sharding.dim_shardings[part.dim].axes, tensor.type.shape[part.dim] // part.count
    if of_part is None or not _are_even(part.count, size, of_tensor, of_part, mesh):
        return False
    is_only = len(users(tensor)) == len(slices)
    plan = parts_of(tensor, part.dim, Parts(part.count, of_tensor, of_part, mesh), is_only=is_only)
    if plan is None or (plan.is_direct and not _are_regular(part.count, of_tensor, mesh)):
        return False
    parts = ShardedValue.of(plan.build(), sharding.mesh_or_ref)
    for op, number in slices:
        result = op.results[0]
        with ir.InsertionPoint(op), op.location:
            value = parts.along(part.dim, number, number + 1).value
            value = stablehlo.build("reshape", result.type, value, sharding=sharding_of(result))
        result.replace_all_uses_with(value)
        op.erase()
    return True


@dataclass(frozen=True, slots=True)
class _ReshapedParts:
    """A dimension of the operand (side 0) or result (side 1) of a reshape that has `count` parts on the other side."""

    side: int
    dim: int
    of_part: int
    count: int


def _reshaped_parts(op: Any) -> _ReshapedParts | None:
    """Returns the parts that a reshape splits a sharded dimension into, or merges into one; None if it does neither."""
    if not has_static_shapes(op):
        return None
    values = op.operands[0], op.results[0]
    for group in reshape_groups(*(tuple(value.type.shape) for value in values)):
        dims = group.operand_dims, group.result_dims
        for side in (0, 1):
            of_parts, dim = dims[1 - side], dims[side].start
            if len(dims[side]) != 1 or len(of_parts) < 2 or shards_along(values[side], dim, op) == 1:
                continue
            shards = [shards_along(values[1 - side], one, op) for one in of_parts]
            if shards[0] == 1 and shards[1] > 1 and set(shards[2:]) <= {1}:
                return _ReshapedParts(side, dim, of_parts[1], values[1 - side].type.shape[of_parts[0]])
    return None


def _reshape(op: Any, reshaped: _ReshapedParts, meshes: Mapping[str, Mesh]) -> bool:
    """Computes the product that a reshape splits, or those of merged parts, on parts; returns whether it did."""
    operand, result = op.operands[0], op.results[0]
    joined, split = (operand, result)[reshaped.side], (result, operand)[reshaped.side]
    found = sharding_and_mesh(joined, meshes)
    after = sharding_of(split)
    if found is None or after is None or after.mesh_or_ref != found[0].mesh_or_ref:
        return False
    sharding, mesh = found
    before, of_part = sharding.dim_shardings[reshaped.dim].axes, after.dim_shardings[reshaped.of_part].axes
    size = joined.type.shape[reshaped.dim] // reshaped.count
    if not _are_even(reshaped.count, size, before, of_part, mesh):
        return False
    parts = Parts(reshaped.count, before, of_part, mesh)
    if reshaped.side == 0:
        plan = parts_of(joined, reshaped.dim, parts, is_only=has_one_use(joined))
        if plan is None or plan.is_direct:
            return False
        op.operands[0] = plan.build()
        return True
    used = users_of_parts(joined, reshaped.dim, parts)
    if used is None:
        return False
    with ir.InsertionPoint(op), op.location:
        type_ = parts.type(joined.type, reshaped.dim)
        value = stablehlo.build("reshape", type_, operand, sharding=parts.sharding(sharding, reshaped.dim))
    for one in used:
        one.replace(value)
    op.erase()
    return True
