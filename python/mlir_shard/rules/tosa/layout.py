# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of TOSA's ops that rearrange elements, and that take or write rows at given indices."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, pointwise_but, resized, shape_of, transposed, without_ones
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.tensor import joining, reshape_beside_whole
from mlir_shard.rules.windows import padding_of
from mlir_shard.sharding.rule import FactorType, OpShardingRule

sharding_rule("tosa.reshape")(reshape_beside_whole)
sharding_rule("tosa.concat")(joining("axis"))


@sharding_rule("tosa.reshape_block_scaled")
def reshape_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """The leading dimensions that all shapes begin with go through, the rest must be replicated."""
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
    return transposed(op, op.attributes["perms"])


# What a device's block of the result needs of others differs by the padding.
@sharding_rule("tosa.pad", context_key=padding_of)
@sharding_rule("tosa.slice")
def shift(op: Any, options: RuleOptions) -> OpShardingRule:
    """Where the size changes, elements move by offsets that are constant, so neighbours can exchange them."""
    return resized(op, FactorType.PERMUTATION, blocked=options.conservative, related=1)


@sharding_rule("tosa.reverse")
def reverse(op: Any, options: RuleOptions) -> OpShardingRule:
    """The reversed dimension exchanges its blocks."""
    return pointwise_but(op, (op.attributes["axis"].value,), FactorType.PERMUTATION)


@sharding_rule("tosa.tile")
def tile(op: Any, options: RuleOptions) -> OpShardingRule:
    """A dimension of the result is made of the repetitions and of what is repeated."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op, 1)
    for dim, (size, result_size) in enumerate(zip(before, after, strict=True)):
        if result_size != size:
            builder.add_factor([None], [dim], result_size // size)
        builder.add_factor([dim], [dim], size)
    return without_ones(builder.build())


@sharding_rule("tosa.gather")
def gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Of values (n, k, c) at indices (n, w): every index by itself, in whole values along `k`."""
    batch, rows, channels = shape_of(op.operands[0].type)
    return (
        RuleBuilder.for_op(op)
        .add_factor([0, 0], [0], batch)
        .add_factor([None, 1], [1], shape_of(op.operands[1].type)[1])
        .add_factor([2, None], [2], channels)
        .add_factor([1, None], [None], rows, FactorType.NEED_REPLICATION)
        .build()
    )


@sharding_rule("tosa.scatter")
def scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Into values (n, k, c) at indices (n, w): batches and channels go through, rows must be replicated."""
    batch, rows, channels = shape_of(op.operands[0].type)
    return (
        RuleBuilder.for_op(op)
        .add_factor([0, 0, 0], [0], batch)
        .add_factor([2, None, 2], [2], channels)
        .add_factor([1, None, None], [1], rows, FactorType.NEED_REPLICATION)
        .add_factor([None, 1, 1], [None], shape_of(op.operands[1].type)[1], FactorType.NEED_REPLICATION)
        .build()
    )


@sharding_rule("tosa.row_gather", "tosa.row_gather_block_scaled")
def row_gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """As `gather`, but of several rows for each index; scales go with the blocks of data they belong to."""
    tensors = len(op.results)
    batch, rows, channels = shape_of(op.operands[0].type)
    indices = shape_of(op.operands[tensors].type)[1]
    scales = shape_of(op.operands[tensors - 1].type)[2]
    of_indices = [None] * tensors
    rule = (
        RuleBuilder.for_op(op)
        .add_factor([*[0] * tensors, 0, None], [0] * tensors, batch)
        .add_factor([*of_indices, 1, None], [1] * tensors, indices)
        .add_factor([*of_indices, None, None], [1] * tensors, shape_of(op.results[0].type)[1] // max(indices, 1))
        .add_factor([*[2] * tensors, None, None], [2] * tensors, scales)
        .add_factor(
            [2, *[None] * (tensors + 1)],
            [2, *[None] * (tensors - 1)],
            channels // max(scales, 1),
            FactorType.NEED_REPLICATION,
        )
        .add_factor([*[1] * tensors, None, None], of_indices, rows, FactorType.NEED_REPLICATION)
        .build()
    )
    return without_ones(rule)
