# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of products of tensors: contracted dimensions are reductions."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")


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
