# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of TOSA's reductions, of argmax and of Fourier transforms."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.reduction import Combiner, reduces_with
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule(
    "tosa.reduce_all",
    "tosa.reduce_any",
    "tosa.reduce_max",
    "tosa.reduce_min",
    "tosa.reduce_product",
    "tosa.reduce_sum",
)
def reduce(op: Any, options: RuleOptions) -> OpShardingRule:
    """The reduced dimension is a reduction; the result has a dimension of size 1 in its place."""
    axis = op.attributes["axis"].value
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        if dim == axis:
            builder.add_factor([dim], [None], size, FactorType.REDUCTION)
        else:
            builder.add_factor([dim], [dim], size)
    return builder.build()


reduces_with(Combiner.AND, "tosa.reduce_all")
reduces_with(Combiner.OR, "tosa.reduce_any")
reduces_with(Combiner.MAX, "tosa.reduce_max")
reduces_with(Combiner.MIN, "tosa.reduce_min")
reduces_with(Combiner.PRODUCT, "tosa.reduce_product")
reduces_with(Combiner.SUM, "tosa.reduce_sum")


@sharding_rule("tosa.argmax")
def argmax(op: Any, options: RuleOptions) -> OpShardingRule:
    """The dimension that is searched has to be whole: positions in a block are not those in the whole."""
    axis = op.attributes["axis"].value
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        if dim == axis:
            builder.add_factor([dim], [None], size, FactorType.NEED_REPLICATION)
        else:
            builder.add_factor([dim], [dim - (dim > axis)], size)
    return builder.build()


@sharding_rule("tosa.fft2d", "tosa.rfft2d")
def fourier(op: Any, options: RuleOptions) -> OpShardingRule:
    """Each image of a batch by itself, and whole."""
    batch, *before = shape_of(op.operands[0].type)
    after = shape_of(op.results[0].type)[1:]
    builder = RuleBuilder.for_op(op).add_common_factor(0, batch)
    for dim, (size, result_size) in enumerate(zip(before, after, strict=True), start=1):
        if size == result_size:
            builder.add_common_factor(dim, size, FactorType.NEED_REPLICATION)
        else:
            builder.add_factors_of_sides(dim, size, result_size)
    return builder.build()
