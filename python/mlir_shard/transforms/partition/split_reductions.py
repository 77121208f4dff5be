# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that reduce and scan each shard first, and then the results of the shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_kinds import OpKinds, operations_of_results
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.analyses import held
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.computed_bodies import apply_body, may_repeat_initial_values
from mlir_shard.rules.cumulative import full_windows_dim, starts_neutrally
from mlir_shard.rules.reduction import (
    Combination,
    combination_of,
    may_combine,
    reduction_op,
)
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.rules.windows import (
    REDUCE_WINDOW,
    set_padding,
    windows_along_dims,
)
from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.partition.sharded_pieces import ShardedValue
from mlir_shard.transforms.shardings import listed_meshes, rule_cache, sharding_and_mesh

_RESHARD = "sdy.reshard"


@register
class ReduceInBlocks(Pass):
    """Removes reshards of a reduction's operand that only gather reduced dimensions, if the partial results of the
    reduction can be combined, but not as partial values of sdy: a product, a bitwise operation, several results each
    with another operation, or a region of StableHLO.

    Reshards that move axes from reduced dimensions to others are removed as well, if partial results are so small that
    combining them communicates less. The local program that `spmdize` makes of such an op combines them, so its result
    is complete.
    """

    name = "shard-reduce-in-blocks"
    anchor = "func.func"
    summary = "Partitions products, bitwise and other reductions into reductions of shards"
    needs = (_RESHARD,)

    def run(self, op: Any) -> bool:
        rules = rule_cache()
        changed = False
        names = list(filter(may_combine, held(op).operations))
        for inner in operations_of_results(op, names, (_RESHARD,), 0):
            if not len(inner.results) or reduction_op(inner) is not None:
                continue
            combination, rule = combination_of(inner), rules.rule_for(inner)
            if combination is not None and rule is not None and rule.reduction_factors:
                changed |= _take_blocks(inner, rule, combination)
        return changed


def _take_blocks(op: Any, rule: OpShardingRule, combination: Combination) -> bool:
    changed = False
    for number, value in enumerate(op.operands):
        reshard = defining_op(value, _RESHARD)
        if reshard is None or not _moves_only_reduced(reshard, rule, number, combination):
            continue
        op.operands[number] = reshard.operands[0]
        if not list(reshard.results[0].uses):
            reshard.erase()
        changed = True
    return changed


def _moves_only_reduced(reshard: Any, rule: OpShardingRule, number: int, combination: Combination) -> bool:
    """Returns whether a reshard only gathers dimensions of reduction factors, or moves their axes to other dimensions
    although combining partial results communicates less."""
    before, after = sharding_of(reshard.operands[0]), sdy.get_sharding(reshard.results[0])
    if before is None or after is None or before.mesh_or_ref != after.mesh_or_ref or before.unreduced_axes:
        return False
    mesh = sdy.mesh_of(before, reshard)
    if mesh is None:
        return False
    reduced, shape = set(rule.reduction_factors), reshard.operands[0].type.shape
    left: set[AxisRef] = set()
    moved: set[AxisRef] = set()
    # The elements of a shard that are reduced to one, and the number of partial results.
    elements_per_result = partials = 1
    dims = zip(
        shape, before.dim_shardings, after.dim_shardings, rule.operand_mappings[number].dim_mappings, strict=True
    )
    for size, old, new, of_dim in dims:
        if set(of_dim.factor_indices) <= reduced:
            elements_per_result *= size // old.sharded_size(mesh)
        if old.axes == new.axes:
            continue
        if set(of_dim.factor_indices) <= reduced and not new.axes:
            left.update(old.axes)
            partials *= old.sharded_size(mesh)
        elif new.axes[: len(old.axes)] == old.axes:
            moved.update(new.axes[len(old.axes) :])
        else:
            return False
    # A collective that reduces receives each result about twice, a gather of partial results all of them.
    results = 2 if combination.combiners else partials
    return not moved or (moved <= left and elements_per_result > results)


@register
class ScanInBlocks(Pass):
    """Splits the sharded dimension of a cumulative windowed reduction, whose windows are all elements up to one or from
    one on, into its shards.

    Each shard is reduced cumulatively. Then each of its elements is combined with the total of all preceding shards
    (for windows from an element on, of all following shards), which every device computes from the totals of shards.
    The body has to be a sum, product, maximum, minimum or bitwise operation, or is computed on a few numbers to find
    whether it is associative, such as that of a cumulative log-sum-exp, and its initial value an identity.
    These are the two steps of a parallel prefix sum (G. E. Blelloch, Prefix sums and their applications, 1990). Uneven
    shards are padded at the end with initial values.
    """

    name = "shard-scan-in-blocks"
    anchor = "func.func"
    summary = "Computes cumulative reductions along sharded dimensions from the totals of shards"
    needs = (REDUCE_WINDOW,)

    def run(self, op: Any) -> bool:
        meshes = listed_meshes(op)
        changed = False
        for inner, dim in OpKinds(op, REDUCE_WINDOW).decided(full_windows_dim):
            found = sharding_and_mesh(inner.operands[0], meshes)
            if found is None or found[0].unreduced_axes:
                continue
            sharding, mesh = found
            if not sharding.is_equivalent(sharding_of(inner.results[0])):
                continue
            shards = sharding.dim_shardings[dim].sharded_size(mesh)
            if shards == 1 or inner.operands[0].type.shape[dim] <= shards or not starts_neutrally(inner):
                continue
            with ir.InsertionPoint(inner), inner.location:
                value = _scanned(inner, dim, shards, sharding)
            inner.results[0].replace_all_uses_with(value)
            inner.erase()
            changed = True
        return changed


def _scanned(op: Any, dim: int, shards: int, sharding: TensorSharding) -> Any:
    """Returns the result of a cumulative reduction along `dim`, which has `shards` shards by `sharding`."""
    value, initial = op.operands
    cut = _in_shards(value, initial, dim, shards, sharding)
    axes, size = cut.axes[dim], cut.value.type.shape[dim + 1]
    is_forward = windows_along_dims(op)[0].low > 0
    scanned = _windows(op, cut, dim + 1, size, size, is_forward=is_forward)
    last, first = (size - 1, 0) if is_forward else (0, 1)
    totals = scanned.along(dim + 1, last, last + 1).uncut(dim).resharded(dim, ())
    totals = totals.along(dim, first, first + shards - 1)
    before = _windows(op, totals, dim, shards - 1, shards, is_forward=is_forward).resharded(dim, axes).value
    type_, dims = scanned.value.type, [one for one in range(scanned.value.type.rank) if one != dim + 1]
    before = stablehlo.build(
        "broadcast_in_dim", type_, before, sharding=scanned.sharding, broadcast_dimensions=stablehlo.sizes(dims)
    )
    pair = (before, scanned.value) if is_forward else (scanned.value, before)
    (combined,) = apply_body(op, pair, lambda made: sdy.set_sharding(made.results[0], scanned.sharding))
    return replace(scanned, value=combined).uncut(dim).along(dim, 0, value.type.shape[dim]).value


def _in_shards(value: Any, initial: Any, dim: int, shards: int, sharding: TensorSharding) -> ShardedValue:
    """Returns a value cut along a dimension with `shards` shards, padded at the end with initial values."""
    axes = tuple(of_dim.axes for of_dim in sharding.dim_shardings)
    missing = -value.type.shape[dim] % shards
    whole = ShardedValue(value, axes, sharding.mesh_or_ref).padded(dim, 0, missing, initial)
    return whole.cut(dim, axes[dim], shards)


def _windows(op: Any, value: ShardedValue, dim: int, size: int, results: int, *, is_forward: bool) -> ShardedValue:
    """Returns a windowed reduction of another value, with windows of `size` elements along a dimension."""
    copied = op.clone().operation
    copied.operands[0] = value.value
    type_ = value.value.type
    for name in list(copied.attributes):
        if name in _PER_DIMENSION or name.startswith("sdy."):
            del copied.attributes[name]
    copied.attributes["window_dimensions"] = stablehlo.sizes([size if one == dim else 1 for one in range(type_.rank)])
    copied.results[0].set_type(stablehlo.with_size(type_, dim, results))
    set_padding(copied, {dim: (results - 1, 0) if is_forward else (0, results - 1)})
    copied.attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue((value.sharding,)))
    return replace(value, value=copied.results[0])


_PER_DIMENSION = frozenset(("base_dilations", "padding", "window_dilations", "window_strides"))


@register
class SplitReductions(Pass):
    """Splits a sharded dimension that a StableHLO reduction reduces into its shards, and reduces each shard first.

    The pass handles reductions that no collective performs: by a region, such as that of an argmax, and, with
    StableHLO's collectives, products and bitwise operations. Only one element of each shard remains to be gathered.
    StableHLO allows a reduction in any tree in which its initial values occur any number of times; the pass splits a
    reduction only if repeated initial values are known not to change its result.
    """

    name = "shard-split-reductions"
    anchor = "func.func"
    summary = "Splits reductions that collectives do not support into local reductions of shards and a final one"
    needs = ("stablehlo.reduce",)

    collectives: Literal["shard", "stablehlo"] = option("shard", "the dialect of the collectives inserted later")

    def run(self, op: Any) -> bool:
        meshes = listed_meshes(op)
        changed = False
        for inner in OpKinds(op, "stablehlo.reduce").where(self._is_for):
            cut = _sharded_reduction(inner, meshes)
            if cut is None or not may_repeat_initial_values(inner):
                continue
            with ir.InsertionPoint(inner), inner.location:
                results = _reduced_by_shards(inner, *cut)
            for old, new in zip(inner.results, results, strict=True):
                old.replace_all_uses_with(new)
            inner.erase()
            changed = True
        return changed

    def _is_for(self, op: Any) -> bool:
        if not len(op.results) or reduction_op(op) is not None or not has_static_shapes(op):
            return False
        combination = combination_of(op)
        return self.collectives == "stablehlo" or combination is None or not combination.combiners


def _sharded_reduction(op: Any, meshes: Mapping[str, Mesh]) -> tuple[int, int, TensorSharding] | None:
    """Returns the dimension to cut, its number of shards, and the sharding of the first operand sharded along it."""
    values = list(op.operands)[: len(op.results)]
    reduced = [dim for dim in elements(op.attributes["dimensions"]) if values[0].type.shape[dim] != 1]
    # Elements keep their order if all other reduced dimensions are unsharded.
    for value in values if reduced else ():
        found = sharding_and_mesh(value, meshes)
        if found is None or found[0].unreduced_axes:
            continue
        sharding, mesh = found
        counts = [of_dim.sharded_size(mesh) for of_dim in sharding.dim_shardings]
        dim = min(reduced)
        is_cut = 1 < counts[dim] < value.type.shape[dim]
        if is_cut and all(counts[other] == 1 for other in reduced if other != dim):
            return dim, counts[dim], sharding
    return None


def _reduced_by_shards(op: Any, dim: int, shards: int, sharding: TensorSharding) -> list[Any]:
    """Returns the results of a reduction whose dimension `dim` has `shards` shards by `sharding`."""
    count = len(op.results)
    initial = list(op.operands)[count:]
    cut = [_in_shards(*one, dim, shards, sharding) for one in zip(list(op.operands)[:count], initial, strict=True)]
    within = sorted(other + (other >= dim) for other in elements(op.attributes["dimensions"]))
    kept = [other for other in range(len(cut[0].axes)) if other not in within]
    of_shards = TensorSharding.closed_with((cut[0].axes[other] for other in kept), sharding.mesh_or_ref)
    partial = _reduction(op, [*(one.value for one in cut), *initial], within, [of_shards] * count)
    return _reduction(op, [*partial, *initial], [kept.index(dim)], None)


def _reduction(
    op: Any, operands: Sequence[Any], dims: Sequence[int], shardings: Sequence[TensorSharding] | None
) -> list[Any]:
    """Returns the results of the reduction of other operands along `dims`; without `shardings`, these stay."""
    copied = op.clone().operation
    for number, value in enumerate(operands):
        copied.operands[number] = value
    copied.attributes["dimensions"] = stablehlo.sizes(dims)
    if sdy.SHARDING_RULE in copied.attributes:
        del copied.attributes[sdy.SHARDING_RULE]
    if shardings is not None:
        copied.attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue(tuple(shardings)))
    for result, value in zip(copied.results, operands, strict=False):
        shape = [size for dim, size in enumerate(value.type.shape) if dim not in dims]
        result.set_type(stablehlo.with_shape(result.type, shape))
    return list(copied.results)
