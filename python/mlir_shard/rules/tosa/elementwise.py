# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of TOSA's elementwise ops, which stretch dimensions of size 1."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.compound import without_ones
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

NAMES = (
    "tosa.abs",
    "tosa.add",
    "tosa.apply_scale",
    "tosa.arithmetic_right_shift",
    "tosa.bitwise_and",
    "tosa.bitwise_not",
    "tosa.bitwise_or",
    "tosa.bitwise_xor",
    "tosa.cast",
    "tosa.ceil",
    "tosa.clamp",
    "tosa.clz",
    "tosa.cos",
    "tosa.equal",
    "tosa.erf",
    "tosa.exp",
    "tosa.floor",
    "tosa.greater",
    "tosa.greater_equal",
    "tosa.identity",
    "tosa.intdiv",
    "tosa.log",
    "tosa.logical_and",
    "tosa.logical_left_shift",
    "tosa.logical_not",
    "tosa.logical_or",
    "tosa.logical_right_shift",
    "tosa.logical_xor",
    "tosa.maximum",
    "tosa.minimum",
    "tosa.mul",
    "tosa.negate",
    "tosa.pow",
    "tosa.reciprocal",
    "tosa.rsqrt",
    "tosa.select",
    "tosa.sigmoid",
    "tosa.sin",
    "tosa.sub",
    "tosa.tanh",
)


@sharding_rule(*NAMES)
def broadcasting(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """A factor for each result dimension, common to the operands that have it in its size.

    A dimension that is stretched has a factor of its own, as have a shift or zero points of one element.
    """
    shape = shape_of(op.results[0].type)
    operands = [shape_of(operand.type) for operand in op.operands]
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        dims = [dim if len(operand) == len(shape) and operand[dim] == size else None for operand in operands]
        builder.add_factor(dims, [dim] * len(op.results), size)
    return builder.build() if shape else None


@sharding_rule("tosa.table")
def table(op: Any, options: RuleOptions) -> OpShardingRule:
    """Every element is looked up by itself, in the whole table."""
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        builder.add_factor([dim, None], [dim], size)
    entries = shape_of(op.operands[1].type)[0]
    return builder.add_factor([None, 0], [None], entries, FactorType.NEED_REPLICATION).build()


@sharding_rule("tosa.rescale")
def rescale(op: Any, options: RuleOptions) -> OpShardingRule:
    """Elementwise; multipliers and shifts of channels go with the last dimension."""
    shape = shape_of(op.results[0].type)
    scales = shape_of(op.operands[1].type)[0]
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        of_scale = 0 if dim == len(shape) - 1 and scales == size and op.attributes["per_channel"].value else None
        builder.add_factor([dim, of_scale, of_scale, None, None], [dim], size)
    return builder.build()


@sharding_rule("tosa.cast_from_block_scaled", "tosa.cast_to_block_scaled")
def cast_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """Data and their scales; along the last dimension a scale belongs to a block of data, which has to be whole."""
    side = op.operands if op.name == "tosa.cast_from_block_scaled" else op.results
    data, scales = (shape_of(value.type) for value in side)
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(scales):
        builder.add_common_factor(dim, size)
    last, block = len(data) - 1, data[-1] // max(scales[-1], 1)
    of_block: dict[bool, list[int | None]] = {True: [last, None], False: [last]}
    dims = of_block[len(op.operands) == 2], of_block[len(op.results) == 2]
    return without_ones(builder.add_factor(*dims, block, FactorType.NEED_REPLICATION).build())
