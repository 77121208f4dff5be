# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A reshape whose axes do not fit the borders of its factors: both sides get axes that do.

An axis that does not divide the factor it comes to is kept beside it as an overflow, along which nothing can be
computed. The axes of the side in more blocks are given out again, on each side for itself: each axis, or as much of
it as fits, goes to the first factor that has room. What both sides then agree on is what the reshape has. The idea is
Shardy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule
from mlir_shard.sharding.axes import Axes, add_axis_or_merge
from mlir_shard.sharding.projection import FactorSharding, ShardingProjection, TensorFactorShardings
from mlir_shard.sharding.rule import TensorMapping


def axes_of_reshape(projection: ShardingProjection, rule: OpShardingRule, mesh: Mesh) -> tuple[Axes, ...]:
    """The axes of each factor for an op with one operand and one result, where an axis overflows its factor."""
    operand, result = projection.operands[0], projection.results[0]
    larger = operand if operand.sharding_size(mesh) >= result.sharding_size(mesh) else result
    axes = tuple(axis for factor in larger.factors if factor is not None for axis in factor.all_axes)
    sides = ((operand, rule.operand_mappings[0]), (result, rule.result_mappings[0]))
    legal = [
        _redistributed(tensor, mapping, rule.factor_sizes, axes, mesh).to_sharding(mapping, rule.factor_sizes, "", mesh)
        for tensor, mapping in sides
    ]
    return ShardingProjection.build(legal[:1], legal[1:], rule, mesh).common_prefix_axes()


def _redistributed(
    tensor: TensorFactorShardings, mapping: TensorMapping, sizes: Sequence[int], axes: Axes, mesh: Mesh
) -> TensorFactorShardings:
    order = [factor for dim in mapping.dim_mappings for factor in dim.factor_indices]
    given, overflow = _give_out(axes, [sizes[factor] for factor in order], mesh)
    factors = list(tensor.factors)
    for position, factor in enumerate(order):
        old = factors[factor] or FactorSharding()
        left = overflow if position == len(order) - 1 else ()
        factors[factor] = replace(old, axes=given[position], overflow_axes=left)
    return replace(tensor, factors=tuple(factors))


def _give_out(axes: Axes, sizes: Sequence[int], mesh: Mesh) -> tuple[list[Axes], Axes]:
    """Gives axes to slots of these sizes, the first first; and what is left from where an axis fits nowhere."""
    room = list(sizes)
    given: list[Axes] = [()] * len(room)
    rest = list(axes)
    while rest:
        # Slots are tried once in a row for what is left of one axis, as long as some take a part of it.
        was_taken = False
        left: AxisRef | None = rest[0]
        for slot, size in enumerate(room):
            if left is None:
                break
            part = _part(left, size, mesh)
            if part is None:
                continue
            was_taken = True
            given[slot] = add_axis_or_merge(given[slot], part, mesh)
            room[slot] //= part.size(mesh)
            left = left.suffix_without_overlap(part, mesh)
        if not was_taken:
            return given, tuple(rest)
        rest[:1] = [] if left is None else [left]
    return given, ()


def _part(axis: AxisRef, room: int, mesh: Mesh) -> AxisRef | None:
    """The major part of an axis that divides what is left of a slot; None where nothing of it does."""
    size = axis.size(mesh)
    common = gcd(room, size)
    if room <= 1 or (common == 1 and size != 1):
        return None
    return axis if common == size else AxisRef.sub(axis.name, axis.pre_size, common)
