# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of TOSA's ops that compute: elementwise, matrix products, reductions, argmax.

Also partition rules of ops that take sizes as operands.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.op_names import op_names
from mlir_shard.rules.builder import RuleBuilder, shape_of, without_ones
from mlir_shard.rules.pads import const_shape
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types
from mlir_shard.rules.reduction import Combiner, reduces_with
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("tosa.matmul", "tosa.matmul_t")
def matmul(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a product: batches, rows of the first and columns of the second operand are pass-through.

    The summed dimension is a reduction. The second operand may be one for all batches, and holds rows instead of
    columns in `tosa.matmul_t`.
    """
    columns, summed = (1, 2) if op.name == "tosa.matmul_t" else (2, 1)
    (batch, rows, depth), right = (shape_of(operand.type) for operand in list(op.operands)[:2])
    return (
        RuleBuilder.for_op(op, 2)
        .add_factor([0, 0 if right[0] == batch else None], [0], batch)
        .add_factor([1, None], [1], rows)
        .add_factor([None, columns], [2], right[columns])
        .add_factor([2, summed], [None], depth, FactorType.REDUCTION)
        .build()
    )


@sharding_rule("tosa.matmul_t_block_scaled")
def matmul_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of `tosa.matmul_t`; the summed dimension is made of blocks, one per scale, that stay entire."""
    left, scales, right, _ = (shape_of(operand.type) for operand in op.operands)
    of_right = 0 if right[0] == left[0] else None
    block = left[2] // max(scales[2], 1)
    rule = (
        RuleBuilder.for_op(op)
        .add_factor([0, 0, of_right, of_right], [0], left[0])
        .add_factor([1, 1, None, None], [1], left[1])
        .add_factor([None, None, 1, 1], [2], right[1])
        .add_factor([2, 2, 2, 2], [None], scales[2], FactorType.REDUCTION)
        .add_factor([2, None, 2, None], [None], block, FactorType.NEED_REPLICATION)
        .build()
    )
    return without_ones(rule)


reduces_with(Combiner.SUM, "tosa.matmul", "tosa.matmul_t", "tosa.matmul_t_block_scaled")
NAMES = (
    *op_names(
        "tosa",
        "abs add apply_scale arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor cast ceil clamp "
        "clz cos equal erf exp floor greater greater_equal identity intdiv log logical_and logical_left_shift "
        "logical_not logical_or logical_right_shift logical_xor maximum minimum mul negate pow reciprocal rsqrt "
        "select sigmoid sin sub tanh",
    ),
)


@sharding_rule(*NAMES)
def broadcasting(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns a rule with a factor for each result dimension, common to the operands that have its size.

    A dimension that is stretched has its own factor, as have a shift or zero points of one element.
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
    """Returns the rule of a table: every element is looked up independently, in the entire table."""
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        builder.add_factor([dim, None], [dim], size)
    entries = shape_of(op.operands[1].type)[0]
    return builder.add_factor([None, 0], [None], entries, FactorType.NEED_REPLICATION).build()


@sharding_rule("tosa.rescale")
def rescale(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns an elementwise rule; multipliers and shifts of channels correspond to the last dimension."""
    shape = shape_of(op.results[0].type)
    scales = shape_of(op.operands[1].type)[0]
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        of_scale = 0 if dim == len(shape) - 1 and scales == size and op.attributes["per_channel"].value else None
        builder.add_factor([dim, of_scale, of_scale, None, None], [dim], size)
    return builder.build()


@sharding_rule("tosa.cast_from_block_scaled", "tosa.cast_to_block_scaled")
def cast_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of data and scales; in the last dimension, the block of data of a scale must not be sharded."""
    side = op.operands if op.name == "tosa.cast_from_block_scaled" else op.results
    data, scales = (shape_of(value.type) for value in side)
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(scales):
        builder.add_common_factor(dim, size)
    last, block = len(data) - 1, data[-1] // max(scales[-1], 1)
    of_block: dict[bool, list[int | None]] = {True: [last, None], False: [last]}
    dims = of_block[len(op.operands) == 2], of_block[len(op.results) == 2]
    return without_ones(builder.add_factor(*dims, block, FactorType.NEED_REPLICATION).build())


@sharding_rule(*op_names("tosa", "argmax reduce_all reduce_any reduce_max reduce_min reduce_product reduce_sum"))
def reduce(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a reduction: the reduced dimension is a reduction factor, and has size 1 in the result.

    The dimension that an argmax searches must be replicated, as positions in a shard are not those in the tensor; its
    result omits the dimension.
    """
    axis, is_search = op.attributes["axis"].value, op.name == "tosa.argmax"
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        if dim == axis:
            builder.add_factor([dim], [None], size, FactorType.NEED_REPLICATION if is_search else FactorType.REDUCTION)
        else:
            builder.add_factor([dim], [dim - (is_search and dim > axis)], size)
    return builder.build()


reduces_with(Combiner.AND, "tosa.reduce_all")
reduces_with(Combiner.OR, "tosa.reduce_any")
reduces_with(Combiner.MAX, "tosa.reduce_max")
reduces_with(Combiner.MIN, "tosa.reduce_min")
reduces_with(Combiner.PRODUCT, "tosa.reduce_product")
reduces_with(Combiner.SUM, "tosa.reduce_sum")


@sharding_rule("tosa.fft2d", "tosa.rfft2d")
def fourier(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a Fourier transform: batches may be sharded, dimensions of an image must be replicated."""
    batch, *before = shape_of(op.operands[0].type)
    after = shape_of(op.results[0].type)[1:]
    builder = RuleBuilder.for_op(op).add_common_factor(0, batch)
    for dim, (size, result_size) in enumerate(zip(before, after, strict=True), start=1):
        if size == result_size:
            builder.add_common_factor(dim, size, FactorType.NEED_REPLICATION)
        else:
            builder.add_factors_of_sides(dim, size, result_size)
    return builder.build()


# An index outside of the table may be one past its end.
partition_rule("tosa.table", pure=True)(set_result_types)
partition_rule(
    *NAMES,
    *op_names(
        "tosa",
        "argmax avg_pool2d_adaptive cast_from_block_scaled cast_to_block_scaled concat fft2d matmul matmul_t "
        "matmul_t_block_scaled max_pool2d_adaptive reduce_all reduce_any reduce_max reduce_min reduce_product "
        "reduce_sum rescale resize reverse rfft2d tile transpose",
    ),
    allows_uneven=True,
    pure=True,
)(set_result_types)


@partition_rule("tosa.reshape", "tosa.slice", allows_uneven=True, pure=True)
def with_sizes(op: Any, blocks: Blocks) -> None:
    """Makes the op local: the sizes of the result, the last operand, are those of the shard."""
    set_result_types(op, blocks)
    sizes = list(op.results[0].type.shape)
    if not sizes:
        # A scalar is the same on all devices.
        return
    with ir.InsertionPoint(op), op.location:
        last = len(op.operands) - 1
        op.operands[last] = const_shape(op.operands[last].type, sizes)
