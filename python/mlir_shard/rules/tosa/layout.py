# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of TOSA's ops that lay elements out anew: reshape, transpose, slice, pad, tile, concat, reverse."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.compound import without_ones
from mlir_shard.rules.padding_amounts import padding_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.tensor import join, reshape_beside_whole
from mlir_shard.sharding.rule import FactorType, OpShardingRule

sharding_rule("tosa.reshape")(reshape_beside_whole)


@sharding_rule("tosa.reshape_block_scaled")
def reshape_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """The leading dimensions that all shapes begin with go through, the rest has to be whole."""
    shapes = [shape_of(value.type) for value in (*op.operands, *op.results) if shape_of(value.type)]
    kept = 0
    while all(len(shape) > kept + 1 and shape[kept] == shapes[0][kept] for shape in shapes):
        kept += 1
    builder = RuleBuilder.for_op(op)
    for dim in range(kept):
        builder.add_common_factor(dim, shapes[0][dim])
    values = [*op.operands, *op.results]
    for number, value in enumerate(values):
        for dim, size in list(enumerate(shape_of(value.type)))[kept:]:
            dims = [dim if other == number else None for other in range(len(values))]
            inputs = len(op.operands)
            builder.add_factor(dims[:inputs], dims[inputs:], size, FactorType.NEED_REPLICATION)
    return builder.build()


@sharding_rule("tosa.transpose")
def transpose(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension, in their order."""
    shape = shape_of(op.operands[0].type)
    builder = RuleBuilder.for_op(op)
    for result_dim, operand_dim in enumerate(op.attributes["perms"]):
        builder.add_factor([operand_dim], [result_dim], shape[operand_dim])
    return builder.build()


# What a device's block of the result needs of others differs by the padding.
@sharding_rule("tosa.pad", context_key=padding_of)
@sharding_rule("tosa.slice")
def shift(op: Any, options: RuleOptions) -> OpShardingRule:
    """Where the size changes, elements move by offsets that are constant, so neighbours can exchange them."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    further = [None] * (len(op.operands) - 1)
    builder = RuleBuilder.for_op(op)
    for dim, (size, result_size) in enumerate(zip(before, after, strict=True)):
        moves = size != result_size
        type_ = FactorType.PERMUTATION if moves else FactorType.PASS_THROUGH
        builder.add_factor([dim, *further], [dim], size, type_, blocked=moves and options.conservative)
    return builder.build()


@sharding_rule("tosa.reverse")
def reverse(op: Any, options: RuleOptions) -> OpShardingRule:
    """The reversed dimension exchanges its blocks."""
    axis = op.attributes["axis"].value
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape_of(op.results[0].type),
            lambda dim: FactorType.PERMUTATION if dim == axis else FactorType.PASS_THROUGH,
        )
        .build()
    )


@sharding_rule("tosa.tile")
def tile(op: Any, options: RuleOptions) -> OpShardingRule:
    """A dimension of the result is made of the repetitions and of what is repeated."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    further = [None] * (len(op.operands) - 1)
    builder = RuleBuilder.for_op(op)
    for dim, (size, result_size) in enumerate(zip(before, after, strict=True)):
        if result_size != size:
            builder.add_factor([None, *further], [dim], result_size // size)
        builder.add_factor([dim, *further], [dim], size)
    return without_ones(builder.build())


@sharding_rule("tosa.concat")
def concat(op: Any, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but the concatenated one, which has to be whole."""
    return join(op, op.attributes["axis"].value, options)
