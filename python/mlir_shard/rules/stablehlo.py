# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of StableHLO: elementwise ops, contractions, data movement that keeps every element, reductions.

Which dimensions correspond, and what kind of factor each is, follows Shardy's rule registry.
"""

from __future__ import annotations

import math
from typing import Any

from mlir_shard import host
from mlir_shard.rules.builder import RuleBuilder, rank_of, shape_of
from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")

register_elementwise(
    "stablehlo.abs",
    "stablehlo.add",
    "stablehlo.and",
    "stablehlo.atan2",
    "stablehlo.cbrt",
    "stablehlo.ceil",
    "stablehlo.clamp",
    "stablehlo.compare",
    "stablehlo.complex",
    "stablehlo.convert",
    "stablehlo.cosine",
    "stablehlo.count_leading_zeros",
    "stablehlo.divide",
    "stablehlo.exponential",
    "stablehlo.exponential_minus_one",
    "stablehlo.floor",
    "stablehlo.imag",
    "stablehlo.is_finite",
    "stablehlo.log",
    "stablehlo.log_plus_one",
    "stablehlo.logistic",
    "stablehlo.maximum",
    "stablehlo.minimum",
    "stablehlo.multiply",
    "stablehlo.negate",
    "stablehlo.not",
    "stablehlo.or",
    "stablehlo.popcnt",
    "stablehlo.power",
    "stablehlo.real",
    "stablehlo.reduce_precision",
    "stablehlo.remainder",
    "stablehlo.round_nearest_afz",
    "stablehlo.round_nearest_even",
    "stablehlo.rsqrt",
    "stablehlo.select",
    "stablehlo.shift_left",
    "stablehlo.shift_right_arithmetic",
    "stablehlo.shift_right_logical",
    "stablehlo.sign",
    "stablehlo.sine",
    "stablehlo.sqrt",
    "stablehlo.subtract",
    "stablehlo.tan",
    "stablehlo.tanh",
    "stablehlo.xor",
)


@sharding_rule("stablehlo.constant", "stablehlo.iota", "stablehlo.partition_id", "stablehlo.replica_id")
def made(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """None: there is no operand to propagate from, the users decide."""
    return None


@sharding_rule("stablehlo.dot_general")
def dot_general(op: Any, options: RuleOptions) -> OpShardingRule:
    """Batch, lhs and rhs dimensions in the order of the result, then the contracted ones as reductions."""
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


@sharding_rule("stablehlo.dot")
def dot(op: Any, options: RuleOptions) -> OpShardingRule:
    """A product of matrices or vectors, the last dimension of lhs contracted with the first of rhs."""
    lhs, rhs = (shape_of(operand.type) for operand in op.operands)
    builder = RuleBuilder.for_op(op)
    if len(lhs) == 2:
        builder.add_factor([0, None], [0], lhs[0])
    if len(rhs) == 2:
        builder.add_factor([None, 1], [len(lhs) - 1], rhs[1])
    return builder.add_factor([len(lhs) - 1, 0], [None], rhs[0], FactorType.REDUCTION).build()


@sharding_rule("stablehlo.broadcast_in_dim")
def broadcast_in_dim(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension; the operand has those that it is not stretched along."""
    shape = shape_of(op.operands[0].type)
    operand_dim_of = {result_dim: dim for dim, result_dim in enumerate(op.attributes["broadcast_dimensions"])}
    builder = RuleBuilder.for_op(op)
    for result_dim, size in enumerate(shape_of(op.results[0].type)):
        operand_dim = operand_dim_of.get(result_dim)
        if operand_dim is not None and shape[operand_dim] != size:
            builder.add_factor([operand_dim], [None], 1)
            operand_dim = None
        builder.add_factor([operand_dim], [result_dim], size)
    return builder.build()


@sharding_rule("stablehlo.transpose")
def transpose(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension, in their order."""
    shape = shape_of(op.operands[0].type)
    builder = RuleBuilder.for_op(op)
    for result_dim, operand_dim in enumerate(op.attributes["permutation"]):
        builder.add_factor([operand_dim], [result_dim], shape[operand_dim])
    return builder.build()


@sharding_rule("stablehlo.reduce")
def reduce(op: Any, options: RuleOptions) -> OpShardingRule:
    """Reduced dimensions are reduction factors of the inputs; initial values are scalars and take no part."""
    reduced = set(op.attributes["dimensions"])
    inputs = len(op.results)
    builder = RuleBuilder.for_op(op)
    result_dim = 0
    for dim, size in enumerate(shape_of(op.operands[0].type)):
        operand_dims = [dim] * inputs + [None] * inputs
        if dim in reduced:
            builder.add_factor(operand_dims, [None] * inputs, size, FactorType.REDUCTION)
        else:
            builder.add_factor(operand_dims, [result_dim] * inputs, size)
            result_dim += 1
    return builder.build()


@sharding_rule("stablehlo.reshape")
def reshape(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Factors common to both shapes where the boundaries of their dimensions meet, else factors of one side.

    Both shapes are read as one sequence of factors, major to minor; None where a dimension has size 0.
    """
    operand, result = op.operands[0].type, op.results[0].type
    sizes = (shape_of(operand), shape_of(result))
    if 0 in sizes[0]:
        return None
    return _Reshape(RuleBuilder([rank_of(operand)], [rank_of(result)]), sizes).build()


class _Reshape:
    """Walks operand (side 0) and result (side 1) at once, always adding the next factor of the side that is behind."""

    def __init__(self, builder: RuleBuilder, sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        self._builder = builder
        self._sizes = sizes
        self._dims = [0, 0]
        # The product of all factors so far, and what is left of the current dimension; 0 before it is begun.
        self._done = [1, 1]
        self._left = [0, 0]

    def build(self) -> OpShardingRule:
        while self._dims[0] < len(self._sizes[0]) or self._dims[1] < len(self._sizes[1]):
            if not self._add_size_one():
                self._add_next()
        return self._builder.build()

    def _add_size_one(self) -> bool:
        for side in (0, 1):
            if not self._left[side] and self._dims[side] < len(self._sizes[side]) and self._size(side) == 1:
                self._add(side, 1)
                return True
        return False

    def _add_next(self) -> None:
        for side in (0, 1):
            if not self._left[side]:
                self._left[side] = self._size(side)
        common = math.gcd(self._left[0], self._left[1])
        if self._done[0] != self._done[1]:
            behind = 0 if self._done[0] < self._done[1] else 1
            self._add(behind, self._catch_up(behind, common))
        elif common > 1:
            self._add_common(common)
        else:
            for side in (0, 1):
                self._add(side, self._left[side])

    def _catch_up(self, behind: int, common: int) -> int:
        """The size of the factor that meets the other side, or that leaves `common` for the next factor."""
        left, done, ahead = self._left[behind], self._done[behind], self._done[1 - behind]
        if ahead % done == 0 and left % (ahead // done) == 0:
            return ahead // done
        return left // common if left > common else left

    def _size(self, side: int) -> int:
        dims = self._sizes[side]
        return dims[self._dims[side]] if self._dims[side] < len(dims) else 1

    def _add(self, side: int, size: int) -> None:
        dims: list[int | None] = [None, None]
        dims[side] = self._dims[side]
        self._builder.add_factor(dims[:1], dims[1:], size)
        self._advance(side, size)

    def _add_common(self, size: int) -> None:
        self._builder.add_factor([self._dims[0]], [self._dims[1]], size)
        for side in (0, 1):
            self._advance(side, size)

    def _advance(self, side: int, size: int) -> None:
        self._done[side] *= size
        self._left[side] = self._left[side] // size
        if self._left[side] <= 1:
            self._dims[side] += 1
            self._left[side] = 0
