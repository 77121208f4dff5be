# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types that a contraction is computed in, and whether BLAS or a function of the native core computes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

from mlir_shard.host import ir
from mlir_shard.runtime.launch.libraries import narrow_gemm
from mlir_shard.runtime.lowering.blas.contractions import Contraction

# The largest integers up to which floats hold all, and the largest sums of an i32.
_EXACT_F32, _EXACT_F64, _EXACT_I32 = 1 << 24, 1 << 53, (1 << 31) - 1
_WIDENED: Final = "arith.extsi"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a contraction is computed.

    Attributes:
        inputs: the type of the elements of both operands.
        sums: that of the result.
        function: the symbol of the native core's; None for BLAS.
    """

    inputs: Any
    sums: Any
    function: str | None = None


def arithmetic(found: Contraction) -> Arithmetic | None:
    """Returns how a contraction is computed; None where only loops do it."""
    *inputs, result = (one.type.element_type for one in found.op.operands)
    if isinstance(result, ir.ComplexType):
        return _of_blas(result) if isinstance(result.element_type, (ir.F32Type, ir.F64Type)) else None
    if isinstance(result, ir.FloatType):
        if result.width > 32:
            return _of_blas(result) if isinstance(result, ir.F64Type) else None
        return _narrow(inputs, ir.F32Type.get()) or _of_blas(ir.F32Type.get())
    body = found.op.regions[0].blocks[0].operations
    widened = [one.operation.name for one in body].count(_WIDENED)
    largest = prod(found.sizes[loop] for loop in found.summed) << sum(one.width - 1 for one in inputs)
    i32 = ir.IntegerType.get_signless(32)
    # Sums wrap around, whether in 32 bits or in fewer.
    narrow = _narrow(inputs, i32) if result.width <= i32.width or largest <= _EXACT_I32 else None
    if narrow is not None or widened != 2:
        return narrow
    floats = (ir.F32Type, _EXACT_F32), (ir.F64Type, _EXACT_F64)
    return next((_of_blas(one.get()) for one, most in floats if largest <= most), None)


def _of_blas(type_: Any) -> Arithmetic:
    return Arithmetic(type_, type_)


def _narrow(inputs: list[Any], sums: Any) -> Arithmetic | None:
    function = f"{narrow_gemm.PREFIX}{inputs[0]}"
    is_known = inputs[0] == inputs[1] and function in narrow_gemm.functions()
    return Arithmetic(inputs[0], sums, function) if is_known else None
