# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of the ops that are themselves again on blocks, and of constants."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.rules.partition import Blocks, is_zero, partition_rule, set_result_types
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import OpShardingRule, ReductionOp


@partition_rule(
    "linalg.softmax",
    "stablehlo.dot",
    "stablehlo.dot_general",
    "stablehlo.reshape",
    "stablehlo.transpose",
    when=lambda op: is_elementwise(op.name),
)
@partition_rule("stablehlo.broadcast_in_dim", "tensor.empty", "tensor.splat", makes_elements=True)
def same_op(op: Any, blocks: Blocks) -> None:
    """The same op on blocks: its shape is in its types alone."""
    set_result_types(op, blocks)


def _reduced_from_a_value(op: Any, rule: OpShardingRule) -> Collection[int]:
    """A sum that begins with something else than zero would count that once for every device."""
    if reduction_op(op) is not ReductionOp.SUM or all(is_zero(value) for value in list(op.operands)[len(op.results) :]):
        return ()
    return rule.reduction_factors


@partition_rule("stablehlo.reduce", unshardable=_reduced_from_a_value)
def reduce(op: Any, blocks: Blocks) -> None:
    """The same reduction on blocks; along a sharded dimension its result is partial."""
    set_result_types(op, blocks)


@partition_rule("arith.constant", "stablehlo.constant")
def constant(op: Any, blocks: Blocks) -> bool:
    """A splat becomes a smaller splat; any other constant stays whole."""
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return False
    op.attributes["value"] = ir.DenseElementsAttr.get_splat(blocks.result_types[0], value.get_splat_value())
    set_result_types(op, blocks)
    return True
