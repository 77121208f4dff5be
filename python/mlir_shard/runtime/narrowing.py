# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of floats that LLVM leaves to a library, or leaves undefined."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

_arith = host.dialect("arith")

_TRUNCATION = "arith.truncf"
_TO_SIGNED, _TO_UNSIGNED = "arith.fptosi", "arith.fptoui"
_EQUAL = 0
_ORDERED_AT_LEAST, _ORDERED_LESS, _ORDERED_DIFFERENT, _ORDERED = 3, 4, 6, 7


def by_f32(module: Any) -> None:
    """Makes f16 and bf16 of f64 by way of an f32 that is rounded to odd, which leaves the result rounded once.

    Rounding to odd is due to S. Boldo and G. Melquiond, "When double rounding is odd" (2005).
    """
    for op in _all(module, frozenset({_TRUNCATION})):
        (wide,), narrow = op.operands, op.results[0].type
        if isinstance(wide.type, ir.F64Type) and narrow.width < 32:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_arith.TruncFOp(narrow, _rounded_to_odd(wide)).result)
            op.erase()


def _rounded_to_odd(wide: Any) -> Any:
    f32, f64, i32 = ir.F32Type.get(), ir.F64Type.get(), ir.IntegerType.get_signless(32)
    near = _arith.TruncFOp(f32, wide).result
    back = _arith.ExtFOp(f64, near).result
    bits = _arith.BitcastOp(i32, near).result
    zero, one, minus_one = (_arith.ConstantOp(i32, value).result for value in (0, 1, -1))
    is_inexact = _arith.CmpFOp(_ORDERED_DIFFERENT, back, wide).result
    is_even = _arith.CmpIOp(_EQUAL, _arith.AndIOp(bits, one).result, zero).result
    # Bits count the magnitudes of floats, whatever their sign.
    is_short = _arith.CmpFOp(_ORDERED_LESS, _magnitude(back), _magnitude(wide)).result
    step = _arith.SelectOp(is_short, one, minus_one).result
    is_moved = _arith.AndIOp(is_inexact, is_even).result
    odd = _arith.AddIOp(bits, _arith.SelectOp(is_moved, step, zero).result).result
    return _arith.BitcastOp(f32, odd).result


def _magnitude(wide: Any) -> Any:
    i64 = ir.IntegerType.get_signless(64)
    mask = _arith.ConstantOp(i64, 2**63 - 1).result
    return _arith.BitcastOp(wide.type, _arith.AndIOp(_arith.BitcastOp(i64, wide).result, mask).result).result


def saturate(module: Any) -> None:
    """Has floats beyond an integer type become its nearest number, and NaN 0, as by XLA.

    Of LLVM's own conversions they are undefined, and may come out differently on each rank.
    """
    for op in _all(module, frozenset({_TO_SIGNED, _TO_UNSIGNED})):
        (value,), type_ = op.operands, op.results[0].type
        is_signed = op.name == _TO_SIGNED
        least, end = (-(2 ** (type_.width - 1)), 2 ** (type_.width - 1)) if is_signed else (0, 2**type_.width)
        with ir.InsertionPoint(op), op.location:
            made = ir.Operation.create(op.name, [type_], [value]).results[0]
            for comparison, bound, otherwise in (
                (_ORDERED_LESS, end, end - 1),
                (_ORDERED_AT_LEAST, least, least),
                (_ORDERED, 0, 0),
            ):
                against = _arith.ConstantOp(value.type, float(bound)).result
                is_inside = _arith.CmpFOp(comparison, value, against).result
                made = _arith.SelectOp(is_inside, made, _constant(type_, otherwise)).result
        op.results[0].replace_all_uses_with(made)
        op.erase()


def _constant(type_: Any, number: int) -> Any:
    """An integer by its bits."""
    half = 2 ** (type_.width - 1)
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, (number + half) % (2 * half) - half)).result


def _all(module: Any, names: frozenset[str]) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found
