# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Float arithmetic and conversions for which LLVM calls a library, has undefined results, or lacks support on some CPU.

Arithmetic on f16, bf16 and floats of 8 bits is done in f32 and rounded after each operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named, ops_below, replace_with
from mlir_shard.runtime.launch.cpu import Cpu
from mlir_shard.runtime.lowering import float8

_func = host.dialect("func")
_arith = host.dialect("arith")
EMULATE = (
    "math-extend-to-supported-types{target-type=f32},"
    f"arith-emulate-unsupported-floats{{source-types={','.join(('bf16', 'f16', *float8.TYPES))} target-type=f32}}"
)
_EXTENSION = "arith.extf"
_TRUNCATION = "arith.truncf"
# Such conversions are in F. Giesen, "Float->half variants" (2012). A multiplication by 2^112 changes the exponent from
# the bias of f16 to the bias of f32, also for subnormal numbers.
_TO_F32 = """
func.func private @__mlir_shard_f32_of_f16(%half: i16) -> f32 {
  %magnitude_mask = arith.constant 0x7fff : i32
  %bits = arith.extui %half : i16 to i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %c13 = arith.constant 13 : i32
  %shifted = arith.shli %magnitude, %c13 : i32
  %unscaled = arith.bitcast %shifted : i32 to f32
  %scale = arith.constant 0x77800000 : f32
  %scaled = arith.mulf %unscaled, %scale : f32
  %finite = arith.bitcast %scaled : f32 to i32
  %infinite_exponent = arith.constant 0x7f800000 : i32
  %special = arith.ori %shifted, %infinite_exponent : i32
  %infinity = arith.constant 0x7c00 : i32
  %is_special = arith.cmpi uge, %magnitude, %infinity : i32
  %unsigned = arith.select %is_special, %special, %finite : i32
  %sign = arith.xori %bits, %magnitude : i32
  %c16 = arith.constant 16 : i32
  %sign_bit = arith.shli %sign, %c16 : i32
  %result = arith.ori %unsigned, %sign_bit : i32
  %float = arith.bitcast %result : i32 to f32
  return %float : f32
}"""
# Rounds to the nearest, ties to even. Subnormals of f16 are rounded by adding 0.5, whose unit in the last place is the
# unit of f16's subnormal numbers; NaN stays NaN.
_TO_F16 = """
func.func private @__mlir_shard_f16_of_f32(%float: f32) -> i16 {
  %bits = arith.bitcast %float : f32 to i32
  %magnitude_mask = arith.constant 0x7fffffff : i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %sign = arith.xori %bits, %magnitude : i32

  %absolute = arith.bitcast %magnitude : i32 to f32
  %half = arith.constant 5.0e-1 : f32
  %half_bits = arith.bitcast %half : f32 to i32
  %added = arith.addf %absolute, %half : f32
  %added_bits = arith.bitcast %added : f32 to i32
  %subnormal = arith.subi %added_bits, %half_bits : i32

  %c1 = arith.constant 1 : i32
  %c13 = arith.constant 13 : i32
  %rebias = arith.constant 0xc8000fff : i32
  %kept = arith.shrui %magnitude, %c13 : i32
  %is_odd = arith.andi %kept, %c1 : i32
  %rebiased = arith.addi %magnitude, %rebias : i32
  %rounded = arith.addi %rebiased, %is_odd : i32
  %normal = arith.shrui %rounded, %c13 : i32

  %infinity = arith.constant 0x7c00 : i32
  %nan = arith.constant 0x7e00 : i32
  %f32_infinity = arith.constant 0x7f800000 : i32
  %is_nan = arith.cmpi ugt, %magnitude, %f32_infinity : i32
  %special = arith.select %is_nan, %nan, %infinity : i32

  %least_normal = arith.constant 0x38800000 : i32
  %is_subnormal = arith.cmpi ult, %magnitude, %least_normal : i32
  %finite = arith.select %is_subnormal, %subnormal, %normal : i32
  %least_special = arith.constant 0x47800000 : i32
  %is_special = arith.cmpi uge, %magnitude, %least_special : i32
  %unsigned = arith.select %is_special, %special, %finite : i32
  %c16 = arith.constant 16 : i32
  %sign_bit = arith.shrui %sign, %c16 : i32
  %result = arith.ori %unsigned, %sign_bit : i32
  %narrow = arith.trunci %result : i32 to i16
  return %narrow : i16
}"""
_F32_OF_F16 = "__mlir_shard_f32_of_f16"
_F16_OF_F32 = "__mlir_shard_f16_of_f32"


def round_each_result(module: Any) -> None:
    """Drops fast-math flags of conversions that `EMULATE` adds: LLVM could fold pairs and leave results unrounded."""
    for op in operations_named(module, _EXTENSION, _TRUNCATION):
        if "fastmath" in op.attributes:
            del op.attributes["fastmath"]


def convert_f16_by_integers(module: Any, cpu: Cpu) -> None:
    """Replaces conversions between f16 and f32 by integer arithmetic if `cpu` has no instructions for them."""
    if cpu.converts_f16:
        return
    functions: dict[str, str] = {}
    for op in operations_named(module, _EXTENSION, _TRUNCATION):
        (value,), result = op.operands, op.results[0]
        narrow = value.type if op.name == _EXTENSION else result.type
        if not isinstance(narrow, ir.F16Type):
            continue
        with ir.InsertionPoint(op), op.location:
            if op.name == _EXTENSION:
                functions[_F32_OF_F16] = _TO_F32
                wide = _call(_F32_OF_F16, ir.F32Type.get(), _arith.bitcast(_i16(), value))
                made = wide if result.type == wide.type else _arith.extf(result.type, wide)
            else:
                functions[_F16_OF_F32] = _TO_F16
                made = _arith.bitcast(narrow, _call(_F16_OF_F32, _i16(), value))
        result.replace_all_uses_with(made)
        op.erase()
    for text in functions.values():
        module.body.append(ir.Operation.parse(text))


def _call(name: str, type_: Any, value: Any) -> Any:
    return _func.CallOp([type_], name, [value]).result


def _i16() -> Any:
    return ir.IntegerType.get_signless(16)


_TO_SIGNED = "arith.fptosi"
_TO_UNSIGNED = "arith.fptoui"
_EQUAL = 0
_ORDERED_AT_LEAST = 3
_ORDERED_LESS = 4
_ORDERED_DIFFERENT = 6
_ORDERED = 7


def by_f32(module: Any) -> None:
    """Converts f64 to floats narrower than f32 through an f32 rounded to odd, so that the result is rounded only once.

    Rounding to odd is due to S. Boldo and G. Melquiond, "When double rounding is odd" (2005).
    """
    for op in operations_named(module, _TRUNCATION):
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
    # The bits of a float increase with its magnitude, for both signs.
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
    """Makes conversions to integers saturate: floats out of range become the nearest integer, and NaN 0, as in XLA.

    LLVM's own conversions are undefined for such floats, and may differ across ranks.
    """
    for op in operations_named(module, _TO_SIGNED, _TO_UNSIGNED):
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
    """Returns an integer constant, given as signed or unsigned."""
    half = 2 ** (type_.width - 1)
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, (number + half) % (2 * half) - half)).result


# Ops that move a value without computing on it.
_MOVES = frozenset(
    f"llvm.{name}"
    for name in (
        *("bitcast", "br", "cond_br", "load", "mlir.constant", "mlir.poison", "mlir.undef", "mlir.zero"),
        *("select", "store", "switch"),
    )
)


def hold_bf16_in_integers(module: Any) -> None:
    """Replaces bf16 by i16 in a module of the LLVM dialect, if all arithmetic is on other types.

    If the CPU has no instructions for bf16, LLVM keeps a bf16 that is live across basic blocks as an f32, and calls a
    library function to convert it back.
    """
    held = [op for op in ops_below(module) if any(map(_is_bf16, (*op.operands, *op.results)))]
    blocks = [block for op in ops_below(module) for region in op.regions for block in region.blocks]
    is_passed = any(
        _is_bf16(one) for block in blocks if block.owner.regions[0].blocks[0] == block for one in block.arguments
    )
    if is_passed or not all(op.name in _MOVES for op in held):
        return
    values = [*(one for op in held for one in op.results), *(one for block in blocks for one in block.arguments)]
    for value in filter(_is_bf16, values):
        value.set_type(_i16())
    for op in held:
        if op.name == "llvm.mlir.constant":
            bits = np.float32(op.attributes["value"].value).view(np.int32) >> 16
            op.attributes["value"] = ir.IntegerAttr.get(_i16(), int(bits))
        elif op.name == "llvm.bitcast" and op.operands[0].type == op.results[0].type:
            replace_with(op, [op.operands[0]])


def _is_bf16(value: Any) -> bool:
    return isinstance(value.type, ir.BF16Type)
