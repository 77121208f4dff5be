# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes along which an op can be computed on the shards of its tensors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.sharding import Mesh, OpShardingRule
from mlir_shard.sharding.axes import Axes, any_overlap
from mlir_shard.sharding.projection import FactorSharding, ShardingProjection, cut_dimension, join_factors


def local_factor_axes(
    projection: ShardingProjection, rule: OpShardingRule, unshardable: Collection[int], mesh: Mesh
) -> tuple[Axes, ...]:
    """For each factor the axes on which all tensors agree, none where they do not or it is in `unshardable`.

    Blocks of every tensor are then those of its dimensions: axes of a factor that would make them strided, as the
    factor to its left is not fully sharded, are dropped as well.
    """
    kept: list[Axes] = []
    seen: Axes = ()
    tensors = projection.tensors
    for factor in range(rule.num_factors):
        found = {
            (sharding.axes, sharding.overflow_axes)
            for tensor in tensors
            if (sharding := tensor.factors[factor]) is not None
        }
        axes, overflow = found.pop() if len(found) == 1 else ((), ())
        if overflow or factor in unshardable or any_overlap(axes, seen):
            axes = ()
        kept.append(axes)
        seen += axes
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
        placements: of the operands, then the results.
        rule: the sharding rule.
        unshardable: the factors that get no axes.
    """
    agreed: list[GridAxes | None] = [None] * rule.num_factors
    disagreed = set(unshardable)
    for placement, mapping in zip(placements, rule.tensor_mappings, strict=True):
        for axes, dim in zip(placement.dims, mapping.dim_mappings, strict=True):
            (factor,) = dim.factor_indices
            if agreed[factor] is None:
                agreed[factor] = axes
            elif agreed[factor] != axes:
                disagreed.add(factor)
    kept: list[GridAxes] = []
    seen: set[int] = set()
    for factor, found in enumerate(agreed):
        is_local = found is not None and factor not in disagreed and seen.isdisjoint(found)
        kept.append(found if found is not None and is_local else ())
        seen.update(kept[-1])
    return tuple(kept)


def _strided_factors(kept: list[Axes], rule: OpShardingRule, mesh: Mesh) -> set[int]:
    """The factors whose axes the dimensions of some tensor cannot express."""
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
