# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts that XLA would choose wrongly: those of Fourier transforms, which its CPU takes in the order of rows alone.

XLA's layout assignment does not know that, and gives a transform behind an all-gather of columns another one, which
ends the run. A tensor that has just had one dimension is in the order of rows; the barrier keeps XLA from folding the
reshapes.
"""

from __future__ import annotations

import math
from typing import Any

from mlir_shard.host import ir

TRANSFORM = "stablehlo.fft"


def constrain_layouts(transform: Any) -> None:
    """Has the operand and the result of a Fourier transform of static shape in the order of rows."""
    with ir.InsertionPoint(transform), transform.location:
        transform.operands[0] = _in_order_of_rows(transform.operands[0])[-1].results[0]
    result = transform.results[0]
    with ir.InsertionPoint.after(transform), transform.location:
        ops = _in_order_of_rows(result)
    result.replace_all_uses_except(ops[-1].results[0], [ops[0]])


def _in_order_of_rows(value: Any) -> list[Any]:
    type_ = value.type
    flat = ir.RankedTensorType.get([math.prod(type_.shape)], type_.element_type)
    ops: list[Any] = []
    for name, result in (("reshape", flat), ("optimization_barrier", flat), ("reshape", type_)):
        operand = ops[-1].results[0] if ops else value
        ops.append(ir.Operation.create(f"stablehlo.{name}", [result], [operand]))
    return ops
