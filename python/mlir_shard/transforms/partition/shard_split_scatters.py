# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-split-scatters`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.slice_numbers import SliceNumbers
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.partition.sharded_pieces import ShardedValue
from mlir_shard.transforms.shardings import listed_meshes, sharding_and_mesh

_SCATTER = "stablehlo.scatter"


@register
class SplitScatters(Pass):
    """Splits the windows of a scatter along sharded dimensions of its input into elements, each with an index.

    A window that covers a part of a sharded dimension may cross the boundaries of shards, so the dimension would be
    gathered. With an index for each element along it, each device writes the elements in its shard. A window that is
    not inside the input is not written, so its elements get indices before the first element. JAX makes such a scatter
    of a `dynamic_update_slice` with a start for each element of a batch.
    """

    name = "shard-split-scatters"
    anchor = "func.func"
    summary = "Gives the elements of windows that scatters write along sharded dimensions indices of their own"
    needs = (_SCATTER,)

    def run(self, op: Any) -> bool:
        meshes = listed_meshes(op)
        changed = False
        for inner in operations_named(op, _SCATTER):
            changed |= _split(inner, meshes)
        return changed


def _split(op: Any, meshes: Mapping[str, Mesh]) -> bool:
    count = len(op.results)
    if not has_static_shapes(op) or sdy.SHARDING_RULE in op.attributes:
        return False
    inputs, indices, updates = (op.operands[number].type for number in (0, count, count + 1))
    numbers, changed = SliceNumbers.of(op), False
    for dim, of_updates in zip(numbers.sliced(inputs.rank), numbers.window_dims, strict=True):
        size = updates.shape[of_updates]
        if dim not in numbers.index_map or size == inputs.shape[dim]:
            continue
        # All elements have to have indices, and windows outside of the input negative ones.
        element = indices.element_type
        if size > 1 and (element.is_unsigned or inputs.shape[dim] > 1 << (element.width - 1)):
            continue
        sharding = _sharding_along(op, dim, meshes)
        if sharding is not None:
            with ir.InsertionPoint(op), op.location:
                _split_window(op, dim, of_updates, sharding)
            changed = True
    return changed


def _sharding_along(op: Any, dim: int, meshes: Mapping[str, Mesh]) -> TensorSharding | None:
    """Returns the sharding of the input or the result of a scatter that is sharded along a dimension, or None."""
    for value in (op.operands[0], op.results[0]):
        found = sharding_and_mesh(value, meshes)
        if found is not None and not found[0].unreduced_axes and found[0].dim_shardings[dim].sharded_size(found[1]) > 1:
            return found[0]
    return None


def _split_window(op: Any, dim: int, of_updates: int, sharding: TensorSharding) -> None:
    """Makes a dimension of windows, which is `of_updates` of the updates, one of the indices."""
    numbers, count = SliceNumbers.of(op), len(op.results)
    indices = _with_vectors(op.operands[count], numbers.index_vector_dim, sharding)
    size, vector_dim = op.operands[count + 1].type.shape[of_updates], numbers.index_vector_dim
    of_indices = [one for one in range(indices.value.type.rank) if one != vector_dim]
    place = sum(one not in numbers.window_dims for one in range(of_updates))
    at = of_indices[place] if place < len(of_indices) else (of_indices[-1] + 1 if of_indices else 0)
    component = numbers.index_map.index(dim)
    parts = []
    for number in range(len(numbers.index_map)):
        part = indices.along(vector_dim, number, number + 1)
        if number == component and size > 1:
            part = _inside(part, op.operands[0].type.shape[dim] - size, -size)
        part = _repeated(part, at, size)
        if number == component and size > 1:
            type_, axes = part.value.type, part.sharding
            steps = stablehlo.build("iota", type_, sharding=axes, iota_dimension=stablehlo.integer(at))
            part = replace(part, value=stablehlo.binary("add", part.value, steps, axes))
        parts.append(part)
    moved = replace(
        numbers,
        window_dims=tuple(one for one in numbers.window_dims if one != of_updates),
        collapsed=tuple(sorted((*numbers.collapsed, dim))),
        index_batching=tuple(one + (one >= at) for one in numbers.index_batching),
        index_vector_dim=vector_dim + (at <= vector_dim),
    )
    values = [part.value for part in parts]
    joined = values[0]
    if len(values) > 1:
        joined = stablehlo.concatenate(values, moved.index_vector_dim, parts[0].sharding)
    op.operands[count] = joined
    moved.set_on(op)
    if size > 1 and "indices_are_sorted" in op.attributes:
        op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)


def _with_vectors(indices: Any, vector_dim: int, sharding: TensorSharding) -> ShardedValue:
    """Returns indices with a dimension of the components of index vectors."""
    known = sharding_of(indices)
    value = ShardedValue.of(indices, sharding.mesh_or_ref if known is None else known.mesh_or_ref)
    if vector_dim < indices.type.rank:
        return value
    wider = replace(value, axes=(*value.axes, ()))
    type_ = stablehlo.with_shape(indices.type, [*indices.type.shape, 1])
    return replace(wider, value=stablehlo.build("reshape", type_, indices, sharding=wider.sharding))


def _inside(starts: ShardedValue, last: int, other: int) -> ShardedValue:
    """Returns the starts of windows from 0 to `last`, and `other` for those of all other windows."""
    type_, axes = starts.value.type, starts.sharding

    def everywhere(number: int) -> Any:
        return stablehlo.broadcast(stablehlo.scalar(number, type_.element_type), type_.shape, (), axes)

    is_late = stablehlo.compare("GT", starts.value, everywhere(last), axes)
    is_early = stablehlo.compare("LT", starts.value, everywhere(0), axes)
    is_outside = stablehlo.binary("or", is_late, is_early, axes)
    return replace(starts, value=stablehlo.select(is_outside, everywhere(other), starts.value, axes))


def _repeated(part: ShardedValue, at: int, size: int) -> ShardedValue:
    """Returns a value with another dimension, along which its elements are repeated."""
    rank = part.value.type.rank
    wider = replace(part, axes=(*part.axes[:at], (), *part.axes[at:]))
    shape = [*part.value.type.shape[:at], size, *part.value.type.shape[at:]]
    dims = [dim + (dim >= at) for dim in range(rank)]
    return replace(wider, value=stablehlo.broadcast(part.value, shape, dims, wider.sharding))
