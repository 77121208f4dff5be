# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of the ops that are themselves again on blocks, and of constants."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.rules.initial_values import count_once, neutral_initial_values
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types

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
    if axes:
        count_once(op, neutral_initial_values(op, len(op.results)), axes, blocks)


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
