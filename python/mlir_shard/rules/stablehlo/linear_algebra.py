# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of decompositions, solvers and Fourier transforms of the last dimensions, for batches of them."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.rules.builder import Dims, RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")


@sharding_rule("stablehlo.cholesky")
def cholesky(op: Any, options: RuleOptions) -> OpShardingRule:
    """The two dimensions of a matrix have to be whole."""
    shape = shape_of(op.operands[0].type)
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape, lambda dim: FactorType.PASS_THROUGH if dim < len(shape) - 2 else FactorType.NEED_REPLICATION
        )
        .build()
    )


@sharding_rule("stablehlo.triangular_solve")
def triangular_solve(op: Any, options: RuleOptions) -> OpShardingRule:
    """The product that it inverts, `op(a) @ result = b` or `result @ op(a) = b`, with all matrix dimensions whole."""
    a, b = (shape_of(operand.type) for operand in op.operands)
    row, column = len(a) - 2, len(a) - 1
    transposed = _bindings.TransposeAttr(op.attributes["transpose_a"]).value in ("TRANSPOSE", "ADJOINT")
    left = op.attributes["left_side"].value
    # The dimension of b along which op(a) acts, and the one that it leaves alone.
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
    """Transformed dimensions have to be whole; nothing spreads along the last where a real transform changes it."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    batch = len(before) - len(op.attributes["fft_length"])
    last = len(before) - 1
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            before,
            lambda dim: FactorType.PASS_THROUGH if dim < batch else FactorType.NEED_REPLICATION,
            blocked=lambda dim: dim == last and before[last] != after[last],
        )
        .build()
    )
