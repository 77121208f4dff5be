# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes along which an op can be computed on the shards of its tensors."""

from __future__ import annotations

from collections.abc import Collection

from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes, any_overlap
from mlir_shard.sharding.projection import ShardingProjection


def local_factor_axes(
    projection: ShardingProjection, rule: OpShardingRule, unshardable: Collection[int], mesh: Mesh
) -> tuple[Axes, ...]:
    """For each factor the axes on which all tensors agree, none where they do not or it is in `unshardable`.

    Blocks of every tensor are then those of its dimensions: axes of a factor that would make them strided, as the
    factor to its left is not fully sharded, are dropped as well.
    """
    kept: list[Axes] = []
    seen: Axes = ()
    for factor in range(rule.num_factors):
        found = {
            (sharding.axes, sharding.overflow_axes)
            for tensor in projection.tensors
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


def shardings_of(
    factor_axes: tuple[Axes, ...], rule: OpShardingRule, mesh_or_ref: str | Mesh, mesh: Mesh
) -> tuple[tuple[TensorSharding, ...], tuple[TensorSharding, ...]]:
    """The shardings of operands and results when each factor is sharded along its axes in every tensor."""
    return ShardingProjection.of_factors(factor_axes, rule).to_shardings(rule, mesh_or_ref, mesh)


def _strided_factors(kept: list[Axes], rule: OpShardingRule, mesh: Mesh) -> set[int]:
    """The factors whose axes the dimensions of some tensor cannot express."""
    operands, results = shardings_of(tuple(kept), rule, mesh, mesh)
    said = ShardingProjection.build(operands, results, rule, mesh)
    return {
        factor
        for tensor in said.tensors
        for factor, sharding in enumerate(tensor.factors)
        if sharding is not None and (sharding.axes != kept[factor] or sharding.overflow_axes)
    }
