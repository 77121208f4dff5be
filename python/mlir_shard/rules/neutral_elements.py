# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What changes nothing where it is combined with something else, as a StableHLO constant."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.sharding import ReductionOp


def neutral_element(kind: ReductionOp, element_type: Any) -> Any | None:
    """A scalar constant at the current insertion point; None where the type has none."""
    number = neutral_number(kind, element_type)
    return None if number is None else stablehlo.splat(stablehlo.tensor(element_type), number)


def neutral_number(kind: ReductionOp, element_type: Any) -> float | None:
    """The number; None where the type has none."""
    if kind is ReductionOp.SUM:
        return 0 if isinstance(element_type, ir.FloatType | ir.IntegerType | ir.ComplexType) else None
    is_max = kind is ReductionOp.MAX
    if isinstance(element_type, ir.IntegerType):
        return _least(element_type) if is_max else _largest(element_type)
    if isinstance(element_type, ir.FloatType):
        infinity = float("-inf") if is_max else float("inf")
        has_infinity = ir.FloatAttr.get(element_type, infinity).value == infinity
        return infinity if has_infinity else None
    return None


def _is_unsigned(type_: Any) -> bool:
    # Booleans are unsigned: true is more than false.
    return type_.is_unsigned or type_.width == 1


def _least(type_: Any) -> int:
    return 0 if _is_unsigned(type_) else -(2 ** (type_.width - 1))


def _largest(type_: Any) -> int:
    return 2**type_.width - 1 if _is_unsigned(type_) else 2 ** (type_.width - 1) - 1
