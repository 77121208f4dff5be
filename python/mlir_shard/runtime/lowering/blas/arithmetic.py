# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selection of the types in which a contraction is computed, and of BLAS or a function of the native core for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

from mlir_shard.host import ir
from mlir_shard.runtime.launch.libraries import narrow_gemm
from mlir_shard.runtime.lowering.blas.contractions import Contraction

# The magnitudes up to which f32 and f64 represent all integers, and the largest i32.
_EXACT_F32, _EXACT_F64, _EXACT_I32 = 1 << 24, 1 << 53, (1 << 31) - 1
_WIDENED: Final = "arith.extsi"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The types and the function that compute a contraction.

    Attributes:
        inputs: the element type of both operands.
        sums: the element type of the result.
        function: the symbol of a function of the native core; None for BLAS.
    """

    inputs: Any
    sums: Any
    function: str | None = None


def arithmetic(found: Contraction) -> Arithmetic | None:
    """Returns the arithmetic of a contraction; None if only loops can compute it."""
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
    # Sums wrap around, both in 32 bits and in fewer.
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
