# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of the ops that are themselves again on blocks, and of constants."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.rules.combinations import NEUTRAL, combination_of
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.rules.local_stablehlo import on_first_device
from mlir_shard.rules.partition import Blocks, is_everywhere, partition_rule, set_result_types
from mlir_shard.rules.reduction import reduction_kind
from mlir_shard.sharding import ReductionOp

# Their shapes are in their types alone.
partition_rule(
    "linalg.softmax",
    "stablehlo.dot",
    "stablehlo.dot_general",
    "stablehlo.reshape",
    "stablehlo.transpose",
    when=lambda op: is_elementwise(op.name),
    allows_uneven=True,
)(set_result_types)
partition_rule("stablehlo.broadcast_in_dim", "tensor.empty", "tensor.splat", makes_elements=True, allows_uneven=True)(
    set_result_types
)


@partition_rule("stablehlo.reduce", allows_uneven=True)
def reduce(op: Any, blocks: Blocks) -> None:
    """The same reduction on blocks; along a sharded dimension its result is partial.

    A sum begins with its initial value on one device and with zero on the others, so that the value counts once, and so
    on for other reductions to which it would make a difference.
    """
    set_result_types(op, blocks)
    axes = blocks.reduction_axes
    if not axes:
        return
    count = len(op.results)
    for number, neutral in enumerate(_neutral_numbers(op)):
        initial = op.operands[count + number]
        if neutral is not None and not is_everywhere(initial, neutral):
            with ir.InsertionPoint(op), op.location:
                otherwise = stablehlo.splat(initial.type, neutral)
                op.operands[count + number] = on_first_device(initial, otherwise, axes, blocks)


def _neutral_numbers(op: Any) -> list[int | None]:
    """For each result what adds nothing to it; None where an initial value may count several times."""
    if reduction_kind(op) is ReductionOp.SUM:
        return [0] * len(op.results)
    combination = combination_of(op)
    kinds = combination.kinds if combination is not None else ()
    return [NEUTRAL.get(kind) for kind in kinds]


@partition_rule("arith.constant", "stablehlo.constant", allows_uneven=True)
def constant(op: Any, blocks: Blocks) -> bool:
    """A splat becomes a smaller splat; any other constant stays whole."""
    smaller = smaller_splat(op.attributes["value"], blocks.result_types[0])
    if smaller is None:
        return False
    op.attributes["value"] = smaller
    set_result_types(op, blocks)
    return True


def smaller_splat(value: Any, type_: Any) -> Any | None:
    """The same number all over another type; None where the attribute is none of one number that can be had.

    Where there are no elements any number is.
    """
    if not isinstance(value, ir.DenseElementsAttr):
        return None
    if 0 in type_.shape:
        return ir.Attribute.parse(f"dense<> : {type_}")
    if not value.is_splat:
        return None
    if not isinstance(type_.element_type, ir.IntegerType | ir.FloatType | ir.IndexType):
        return None
    return ir.DenseElementsAttr.get_splat(type_, value.get_splat_value())
