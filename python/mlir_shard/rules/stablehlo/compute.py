# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of StableHLO's ops that compute: elementwise, products, reductions, sorts, decompositions, random bits.

Also the ops without a rule, because no two of their tensors are related dimension by dimension.
"""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_names import op_names
from mlir_shard.rules.builder import Dims, RuleBuilder, pointwise_but, rank_of, shape_of
from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.partition import partition_rule, set_result_types
from mlir_shard.rules.registry import RuleOptions, sharding_rule, without_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")


@sharding_rule("stablehlo.dot_general", any_sizes=True)
def dot_general(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns a rule with batch, lhs and rhs dimensions in the result's order, then contracted ones as reductions."""
    numbers = _bindings.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = (shape_of(operand.type) for operand in op.operands)
    lhs_batch, rhs_batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    lhs_contracted, rhs_contracted = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    builder = RuleBuilder.for_op(op)
    result_dim = 0
    for lhs_dim, rhs_dim in zip(lhs_batch, rhs_batch, strict=True):
        builder.add_factor([lhs_dim, rhs_dim], [result_dim], lhs[lhs_dim])
        result_dim += 1
    for dim, size in enumerate(lhs):
        if dim not in lhs_batch and dim not in lhs_contracted:
            builder.add_factor([dim, None], [result_dim], size)
            result_dim += 1
    for dim, size in enumerate(rhs):
        if dim not in rhs_batch and dim not in rhs_contracted:
            builder.add_factor([None, dim], [result_dim], size)
            result_dim += 1
    for lhs_dim, rhs_dim in zip(lhs_contracted, rhs_contracted, strict=True):
        builder.add_factor([lhs_dim, rhs_dim], [None], lhs[lhs_dim], FactorType.REDUCTION)
    return builder.build()


@sharding_rule("stablehlo.dot", any_sizes=True)
def dot(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a product of matrices or vectors: the last dimension of lhs and the first of rhs contract."""
    lhs, rhs = (shape_of(operand.type) for operand in op.operands)
    builder = RuleBuilder.for_op(op)
    if len(lhs) == 2:
        builder.add_factor([0, None], [0], lhs[0])
    if len(rhs) == 2:
        builder.add_factor([None, 1], [len(lhs) - 1], rhs[1])
    return builder.add_factor([len(lhs) - 1, 0], [None], rhs[0], FactorType.REDUCTION).build()


@sharding_rule("stablehlo.cholesky")
def cholesky(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a Cholesky decomposition: the two dimensions of a matrix must be replicated."""
    rank = rank_of(op.operands[0].type)
    return pointwise_but(op, (rank - 2, rank - 1), FactorType.NEED_REPLICATION)


@sharding_rule("stablehlo.triangular_solve")
def triangular_solve(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a triangular solve: all matrix dimensions must be replicated.

    The factors are those of the product that it inverts, `op(a) @ result = b` or `result @ op(a) = b`.
    """
    a, b = (shape_of(operand.type) for operand in op.operands)
    row, column = len(a) - 2, len(a) - 1
    transposed = _bindings.TransposeAttr(op.attributes["transpose_a"]).value in ("TRANSPOSE", "ADJOINT")
    left = op.attributes["left_side"].value
    # The dimension of b along which op(a) acts, and the other one.
    acted, kept = (row, column) if left else (column, row)
    outer, contracted = (row, column) if left != transposed else (column, row)
    builder = RuleBuilder.for_op(op).add_pointwise(a[:-2])
    of_a_and_b: tuple[Dims, Dims, int] = ([outer, acted], [None], a[outer])
    of_b_and_result: tuple[Dims, Dims, int] = ([None, kept], [kept], b[kept])
    for operands, results, size in (of_a_and_b, of_b_and_result) if left else (of_b_and_result, of_a_and_b):
        builder.add_factor(operands, results, size, FactorType.NEED_REPLICATION)
    builder.add_factor([contracted, None], [acted], a[contracted], FactorType.NEED_REPLICATION)
    return builder.build()


@sharding_rule("stablehlo.fft")
def fft(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of an FFT: transformed dimensions must be replicated; the last is blocked if it is resized."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    batch = len(before) - len(op.attributes["fft_length"])
    last = len(before) - 1
    transformed, blocked = range(batch, len(before)), (last,) if before[last] != after[last] else ()
    return pointwise_but(op, transformed, FactorType.NEED_REPLICATION, blocked=blocked)


@sharding_rule("stablehlo.batch_norm_inference")
def batch_norm_inference(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns an elementwise rule; scale, offset, mean and variance are vectors along the feature dimension."""
    feature = op.attributes["feature_index"].value
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        of_vector = 0 if dim == feature else None
        builder.add_factor([dim, *[of_vector] * (len(op.operands) - 1)], [dim], size)
    return builder.build()


@sharding_rule("stablehlo.rng_bit_generator")
def rng_bit_generator(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns a rule by which the old and new state must be replicated and are unrelated; bits may be sharded."""
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        builder.add_factor([dim], [dim, None], size, FactorType.NEED_REPLICATION, blocked=True)
    for dim, size in enumerate(shape_of(op.results[1].type)):
        builder.add_factor([None], [None, dim], size)
    return builder.build()


@sharding_rule("stablehlo.reduce", any_sizes=True)
def reduce(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a reduction: reduced dimensions are reduction factors; initial values have no factors."""
    reduced = set(elements(op.attributes["dimensions"]))
    inputs = len(op.results)
    builder = RuleBuilder.for_op(op, inputs)
    result_dim = 0
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        if dim in reduced:
            builder.add_factor([dim] * inputs, [None] * inputs, size, FactorType.REDUCTION)
        else:
            builder.add_factor([dim] * inputs, [result_dim] * inputs, size)
            result_dim += 1
    return builder.build()


@sharding_rule("stablehlo.sort")
def sort(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a sort: the sorted dimension must be replicated; it is blocked if no other can be sharded."""
    shape = shape_of(op.operands[0].type)
    dimension = op.attributes["dimension"].value if "dimension" in op.attributes else -1
    dims = (dimension % max(len(shape), 1),)
    nowhere_else = all(dim in dims or size == 1 for dim, size in enumerate(shape))
    return pointwise_but(op, dims, FactorType.NEED_REPLICATION, blocked=dims if nowhere_else else ())


# Elements beyond the end of a tensor are in slices of their own, so they affect no others.
partition_rule(
    *("chlo.top_k", "stablehlo.batch_norm_inference", "stablehlo.bitcast_convert", "stablehlo.cholesky"),
    *("stablehlo.fft", "stablehlo.sort", "stablehlo.triangular_solve"),
    allows_uneven=True,
    pure=True,
)(set_result_types)
register_elementwise(
    *op_names(
        "stablehlo",
        "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential "
        "exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or "
        "popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left "
        "shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor",
    ),
)
without_rule(
    *op_names("stablehlo", "constant iota partition_id replica_id"),
    because=("it has no operands: its users determine its sharding"),
)
without_rule(
    *op_names("stablehlo", "case optimization_barrier return while"),
    because="shardings propagate through it along its data-flow edges",
)
without_rule(
    *op_names("stablehlo", "after_all create_token get_tuple_element infeed outfeed recv send tuple"),
    because="its tensors are sent, received or in a tuple",
)
