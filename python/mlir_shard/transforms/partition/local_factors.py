# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes along which an op can be computed on the shards of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.sharding import Mesh, OpShardingRule
from mlir_shard.sharding.axes import Axes, AxisRef, any_overlap
from mlir_shard.sharding.projection import FactorSharding, ShardingProjection, cut_dimension, join_factors


def local_factor_axes(
    projection: ShardingProjection, rule: OpShardingRule, unshardable: Collection[int], mesh: Mesh
) -> tuple[Axes, ...]:
    """Returns for each factor the axes on which all tensors agree; none if they disagree or it is in `unshardable`.

    Axes of a factor that would make shards strided, as the factor to its left is not fully sharded, are dropped as
    well: every shard is then contiguous along each dimension.
    """
    found: list[set[Axes]] = []
    for factor in range(rule.num_factors):
        of_factor = [one for tensor in projection.tensors if (one := tensor.factors[factor]) is not None]
        found.append(set() if any(one.overflow_axes for one in of_factor) else {one.axes for one in of_factor})
    kept = _agreed(found, unshardable, any_overlap)
    while True:
        strided = _strided_factors(kept, rule, mesh)
        if not strided:
            return tuple(kept)
        for factor in strided:
            kept[factor] = ()


def axes_of_dimensions(
    placements: Sequence[Placement], rule: OpShardingRule, unshardable: Collection[int]
) -> tuple[GridAxes, ...]:
    """Returns `local_factor_axes` as grid axes, for a rule without compound dimensions.

    Each dimension is one factor, so that no axis is split between factors and no shard is strided.

    Args:
        placements: the placements of the operands, then of the results.
        rule: the sharding rule.
        unshardable: the factors that get no axes.
    """
    found: list[set[GridAxes]] = [set() for _ in range(rule.num_factors)]
    for placement, mapping in zip(placements, rule.tensor_mappings, strict=True):
        for axes, dim in zip(placement.dims, mapping.dim_mappings, strict=True):
            (factor,) = dim.factor_indices
            found[factor].add(axes)
    return tuple(_agreed(found, unshardable, lambda axes, others: not set(axes).isdisjoint(others)))


Axis = TypeVar("Axis", AxisRef, int)


def _agreed(
    found: Sequence[Collection[tuple[Axis, ...]]],
    unshardable: Collection[int],
    overlap: Callable[[tuple[Axis, ...], tuple[Axis, ...]], bool],
) -> list[tuple[Axis, ...]]:
    """Returns the axes of each factor on which all tensors agree, without those of factors before it.

    Args:
        found: for each factor, the distinct lists of axes that tensors have along it.
        unshardable: the factors that get no axes.
        overlap: returns whether two lists of axes have some in common.
    """
    kept: list[tuple[Axis, ...]] = []
    seen: tuple[Axis, ...] = ()
    for factor, of_tensors in enumerate(found):
        axes = next(iter(of_tensors)) if len(of_tensors) == 1 else ()
        if factor in unshardable or overlap(axes, seen):
            axes = ()
        kept.append(axes)
        seen += axes
    return kept


def _strided_factors(kept: list[Axes], rule: OpShardingRule, mesh: Mesh) -> set[int]:
    """Returns the factors whose axes the dimensions of some tensor cannot express."""
    sizes = rule.factor_sizes
    distinct = {dim.factor_indices: dim for mapping in rule.tensor_mappings for dim in mapping.dim_mappings}
    strided = set()
    for factors, dim in distinct.items():
        if not any(kept[factor] for factor in factors) or (len(factors) == 1 and len(kept[factors[0]]) == 1):
            continue
        parts = [FactorSharding(kept[factor]) for factor in factors]
        whole = join_factors(parts, [sizes[factor] for factor in factors], mesh)
        for factor, sharding in cut_dimension(whole, dim, sizes, mesh):
            if sharding.axes != kept[factor] or sharding.overflow_axes:
                strided.add(factor)
    return strided
