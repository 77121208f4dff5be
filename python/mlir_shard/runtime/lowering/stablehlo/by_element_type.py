# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites operations of StableHLO that the host lowers incorrectly for some element types."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.stablehlo import binary


def adds_booleans(op: Any) -> bool:
    """Returns whether an addition is of i1, which is the disjunction; the host would add modulo 2."""
    return bool(op.operands[0].type.element_type == stablehlo.boolean())


def disjunction(op: Any) -> list[Any]:
    """Rewrites to the disjunction."""
    return [binary("or", *op.operands)]


def is_of_narrow_floats(op: Any) -> bool:
    """Returns whether the operand has floats of at most 8 bits.

    Many such types lack the infinity to which the host compares, or to which an intermediate result overflows.
    """
    type_ = op.operands[0].type.element_type
    return isinstance(type_, ir.FloatType) and type_.width <= 8


def in_f32(op: Any) -> list[Any]:
    """Rewrites to the operation on f32."""
    wide = stablehlo.convert(op.operands[0], ir.F32Type.get())
    result = op.results[0].type.element_type
    if result == op.operands[0].type.element_type:
        return [stablehlo.convert(stablehlo.build(_name(op), wide.type, wide), result)]
    return [stablehlo.build(_name(op), op.results[0].type, wide)]


def _name(op: Any) -> str:
    return str(op.name.removeprefix("stablehlo."))
