# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of the collectives of StableHLO, which run over devices beside those that a sharding speaks of."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, pointwise, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import OpShardingRule


@sharding_rule(
    "stablehlo.all_reduce",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.cross-replica-sum",
)
def same_shape(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """What devices exchange lies at the same place of their tensors."""
    return pointwise(op)


@sharding_rule("stablehlo.all_gather")
def all_gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but the gathered one."""
    return _changing(op, op.attributes["all_gather_dim"].value)


@sharding_rule("stablehlo.reduce_scatter")
def reduce_scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but the scattered one."""
    return _changing(op, op.attributes["scatter_dimension"].value)


@sharding_rule("stablehlo.all_to_all")
def all_to_all(op: Any, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but those that are split and concatenated."""
    return _changing(op, op.attributes["split_dimension"].value, op.attributes["concat_dimension"].value)


def _changing(op: Any, *dims: int) -> OpShardingRule:
    """The rule of a collective that changes what `dims` hold: they have to be whole, with a factor for each side."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(before):
        if dim not in dims:
            builder.add_common_factor(dim, size)
    for dim in dict.fromkeys(dims):
        builder.add_factors_of_sides(dim, before[dim], after[dim])
    return builder.build()
