# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-split-top-k`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.partition.sharded_pieces import ShardedValue
from mlir_shard.transforms.shardings import listed_meshes, sharding_and_mesh

_TOP_K, _RESHAPE = "chlo.top_k", "stablehlo.reshape"
_FLOATS = (ir.BF16Type, ir.F16Type, ir.F32Type, ir.F64Type)


@register
class SplitTopK(Pass):
    """Splits a sharded dimension of a `chlo.top_k` into its shards, and takes the largest elements of each shard first.

    Only these candidates and their positions are gathered, of which the largest are taken. Equal elements stay in their
    order. If the operand merges a sharded dimension with those before it, as the beams and the vocabulary of a beam
    search, the candidates of each shard are taken before the merge. Uneven shards are padded with the least element.
    """

    name = "shard-split-top-k"
    anchor = "func.func"
    summary = "Takes the largest elements of each shard before those of a sharded dimension"
    needs = (_TOP_K,)

    def run(self, op: Any) -> bool:
        meshes = listed_meshes(op)
        changed = False
        for inner in operations_named(op, _TOP_K):
            cut = _cut(inner, meshes)
            if cut is not None:
                with ir.InsertionPoint(inner), inner.location:
                    _split(inner, cut)
                changed = True
        return changed


@dataclass(frozen=True, slots=True)
class _Cut:
    """A value whose dimensions from `batch` on are merged in the operand of a top-k.

    Attributes:
        source: the value.
        batch: the number of dimensions before the merged ones.
        dim: the last sharded dimension.
        shards: the number of its shards.
        size: the number of elements that are taken from each part, a shard of `dim` with all dimensions after it.
    """

    source: Any
    batch: int
    dim: int
    shards: int
    size: int

    @property
    def length(self) -> int:
        """The number of elements of a part, with padding."""
        shape = self.source.type.shape
        return -(-shape[self.dim] // self.shards) * prod(shape[self.dim + 1 :])


def _cut(op: Any, meshes: Mapping[str, Mesh]) -> _Cut | None:
    """Returns the parts of the operand from which fewer elements are taken than would move otherwise, or None."""
    (operand,) = op.operands
    if not has_static_shapes(op) or sdy.SHARDING_RULE in op.attributes or 0 in operand.type.shape:
        return None
    batch, sources = operand.type.rank - 1, [operand]
    reshape = defining_op(operand, _RESHAPE)
    if reshape is not None and has_static_shapes(reshape):
        merged = reshape.operands[0].type.shape
        if len(merged) > batch + 1 and merged[:batch] == operand.type.shape[:batch]:
            # The operand may have fewer axes: those of the first merged dimension.
            sources.insert(0, reshape.operands[0])
    for source in sources:
        found = sharding_and_mesh(source, meshes)
        if found is None or found[0].unreduced_axes:
            continue
        counts = [of_dim.sharded_size(found[1]) for of_dim in found[0].dim_shardings]
        sharded = [dim for dim in range(batch, len(counts)) if counts[dim] > 1]
        if sharded:
            cut = _Cut(source, batch, sharded[-1], counts[sharded[-1]], 0)
            cut = replace(cut, size=min(op.attributes["k"].value, cut.length))
            return cut if _is_possible(cut) and _is_smaller(cut, prod(counts[:batch])) else None
    return None


def _is_possible(cut: _Cut) -> bool:
    """Returns whether shards are even, or padding is known that follows all elements that it equals."""
    type_, shape = cut.source.type.element_type, cut.source.type.shape
    if shape[cut.dim] % cut.shards == 0:
        return True
    return prod(shape[cut.batch : cut.dim]) == 1 and isinstance(type_, (ir.IntegerType, *_FLOATS))


def _is_smaller(cut: _Cut, batch_shards: int) -> bool:
    """Returns whether gathering the candidates moves fewer bytes than gathering or resharding the operand."""
    shape, type_ = cut.source.type.shape, cut.source.type.element_type
    elements, rows = prod(shape[cut.batch :]), prod(shape[: cut.batch]) // batch_shards
    # If the batch can be sharded instead, each device sends the shards of its rows.
    moved = elements if rows < cut.shards else elements // cut.shards
    candidates = prod(shape[cut.batch : cut.dim]) * cut.shards * cut.size
    bits = getattr(type_, "width", 0)
    return candidates * (bits + 32) < moved * bits


def _split(op: Any, cut: _Cut) -> None:
    values, places = op.results
    parts = _parts(cut)
    of_parts = _taken(parts, cut.size, places.type)
    of_values, of_places = (_merged(one, cut) for one in of_parts)
    last = ir.Operation.create(_TOP_K, [one.type for one in op.results], [of_values.value], {"k": op.attributes["k"]})
    if sdy.SHARDING in op.attributes:
        last.attributes[sdy.SHARDING] = op.attributes[sdy.SHARDING]
    chosen, sharding = last.results[1], sharding_of(places)

    def binary(name: str, left: Any, right: int | Any) -> Any:
        other = stablehlo.splat(left.type, right) if isinstance(right, int) else right
        return stablehlo.binary(name, left, other, sharding)

    wide = ShardedValue.of(chosen, of_places.mesh)
    wide = replace(wide, axes=(*wide.axes, ()))
    type_ = stablehlo.with_shape(chosen.type, [*chosen.type.shape, 1])
    starts = stablehlo.build("reshape", type_, chosen, sharding=wide.sharding)
    batching = [(dim, dim) for dim in range(cut.batch)]
    inside = stablehlo.gather(of_places.value, starts, [cut.batch], batching, sharding)
    before = binary("multiply", binary("divide", chosen, cut.size), cut.length)
    values.replace_all_uses_with(last.results[0])
    places.replace_all_uses_with(binary("add", before, inside))
    merge = defining_op(op.operands[0], _RESHAPE)
    op.erase()
    if merge is not None and not list(merge.results[0].uses):
        merge.erase()


def _parts(cut: _Cut) -> ShardedValue:
    """Returns the source with a dimension of shards in place of `dim`, and one of the elements of each part."""
    found = sharding_of(cut.source)
    value = ShardedValue.of(cut.source, None if found is None else found.mesh_or_ref)
    missing = -cut.source.type.shape[cut.dim] % cut.shards
    if missing:
        value = value.padded(cut.dim, 0, missing, _least(cut.source.type.element_type))
    value = value.cut(cut.dim, value.axes[cut.dim], cut.shards)
    for _ in range(cut.dim + 1, cut.source.type.rank):
        value = value.uncut(cut.dim + 1)
    return value


def _taken(parts: ShardedValue, size: int, places: Any) -> tuple[ShardedValue, ShardedValue]:
    """Returns the largest elements along the last dimension, and their positions in it."""
    shape = [*parts.value.type.shape[:-1], size]
    types = [stablehlo.with_shape(type_, shape) for type_ in (parts.value.type, places)]
    taken = ir.Operation.create(_TOP_K, types, [parts.value], {"k": stablehlo.integer(size)})
    sdy.set_shardings(taken, dict.fromkeys(range(2), parts.sharding))
    values, positions = (replace(parts, value=result) for result in taken.results)
    return values, positions


def _merged(value: ShardedValue, cut: _Cut) -> ShardedValue:
    """Returns candidates gathered along all dimensions after the batch, which are merged."""
    for dim in range(cut.batch, cut.dim + 1):
        if value.axes[dim]:
            value = value.resharded(dim, ())
    for _ in range(cut.batch, cut.dim + 1):
        value = value.uncut(cut.batch)
    return value


def _least(type_: Any) -> Any:
    """Builds the scalar that no other of a type precedes in the order of a top-k: for floats, the total order."""
    scalar = stablehlo.tensor(type_)
    if isinstance(type_, _FLOATS):
        return stablehlo.constant(ir.Attribute.parse(f"dense<0x{'F' * (type_.width // 4)}> : {scalar}"))
    return stablehlo.splat(scalar, 0 if type_.is_unsigned or type_.width == 1 else -(1 << (type_.width - 1)))
