# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of CHLO: elementwise ops, those that broadcast their operands first, and the largest elements.

Shardy sees no CHLO, as it is lowered before; these rules say of an op what Shardy's say of what it becomes.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.without_rule import without_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

register_elementwise(
    "chlo.acos",
    "chlo.acosh",
    "chlo.asin",
    "chlo.asinh",
    "chlo.atan",
    "chlo.atanh",
    "chlo.bessel_i1e",
    "chlo.conj",
    "chlo.cosh",
    "chlo.digamma",
    "chlo.erf",
    "chlo.erf_inv",
    "chlo.erfc",
    "chlo.is_inf",
    "chlo.is_neg_inf",
    "chlo.is_pos_inf",
    "chlo.lgamma",
    "chlo.mulhi",
    "chlo.next_after",
    "chlo.polygamma",
    "chlo.sinh",
    "chlo.square",
    "chlo.tan",
    "chlo.zeta",
)

without_rule("chlo.constant", because="it has no operand: its users decide")


@sharding_rule(
    "chlo.broadcast_add",
    "chlo.broadcast_and",
    "chlo.broadcast_atan2",
    "chlo.broadcast_compare",
    "chlo.broadcast_complex",
    "chlo.broadcast_divide",
    "chlo.broadcast_maximum",
    "chlo.broadcast_minimum",
    "chlo.broadcast_multiply",
    "chlo.broadcast_next_after",
    "chlo.broadcast_or",
    "chlo.broadcast_polygamma",
    "chlo.broadcast_power",
    "chlo.broadcast_remainder",
    "chlo.broadcast_select",
    "chlo.broadcast_shift_left",
    "chlo.broadcast_shift_right_arithmetic",
    "chlo.broadcast_shift_right_logical",
    "chlo.broadcast_subtract",
    "chlo.broadcast_xor",
    "chlo.broadcast_zeta",
)
def broadcasting(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension; an operand has those that it is not stretched along.

    Operands are aligned at their last dimensions, or, where `broadcast_dimensions` says so, the smaller one is put
    along those of the result.
    """
    result = shape_of(op.results[0].type)
    shapes = [shape_of(operand.type) for operand in op.operands]
    given = list(op.attributes["broadcast_dimensions"]) if "broadcast_dimensions" in op.attributes else None
    builder = RuleBuilder.for_op(op)
    followed = []
    for shape in shapes:
        aligned = range(len(result) - len(shape), len(result))
        along = given if given is not None and len(shape) < len(result) else aligned
        followed.append({result_dim: dim for dim, result_dim in enumerate(along) if shape[dim] == result[result_dim]})
    for result_dim, size in enumerate(result):
        builder.add_factor([of_operand.get(result_dim) for of_operand in followed], [result_dim], size)
    return builder.build()


@sharding_rule("chlo.top_k")
def top_k(op: Any, options: RuleOptions) -> OpShardingRule:
    """The last dimension, of which the largest elements are taken, has to be whole."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    return RuleBuilder.for_op(op).add_resized(before, after, FactorType.NEED_REPLICATION, blocked=True).build()
