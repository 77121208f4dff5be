# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of TOSA's ops that rearrange elements, and that take or write rows at given indices."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.array_elements import elements
from mlir_shard.rules.builder import RuleBuilder, pointwise_but, resized, shape_of, transposed, without_ones
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.tensor import joining, reshape_beside_whole
from mlir_shard.rules.windows import padding_of
from mlir_shard.sharding.rule import FactorType, OpShardingRule

sharding_rule("tosa.reshape")(reshape_beside_whole)
sharding_rule("tosa.concat")(joining("axis"))


@sharding_rule("tosa.reshape_block_scaled")
def reshape_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns a rule by which leading dimensions common to all shapes are pass-through, all others replicated."""
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


@sharding_rule("tosa.transpose", any_sizes=True)
def transpose(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a transpose: a factor for each result dimension, in their order."""
    return transposed(op, elements(op.attributes["perms"]))


# The elements that a device's shard of the result needs from others depend on the padding.
@sharding_rule("tosa.pad", context_key=padding_of)
@sharding_rule("tosa.slice")
def shift(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a shift: along a resized dimension elements move by constants; neighbours exchange them."""
    return resized(op, FactorType.PERMUTATION, blocked=options.conservative, related=1)


@sharding_rule("tosa.reverse")
def reverse(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a reverse: devices exchange their shards along the reversed dimension."""
    return pointwise_but(op, (op.attributes["axis"].value,), FactorType.PERMUTATION)


@sharding_rule("tosa.tile")
def tile(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a tile: a resized dimension has a factor for the repetitions and one for the operand."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op, 1)
    for dim, (size, result_size) in enumerate(zip(before, after, strict=True)):
        if result_size != size:
            builder.add_factor([None], [dim], result_size // size)
        builder.add_factor([dim], [dim], size)
    return without_ones(builder.build())
