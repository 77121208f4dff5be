# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions between f32 and floats of 8 bits, which LLVM lacks, by integer arithmetic.

The formats are those of P. Micikevicius et al., "FP8 formats for deep learning" (2022), those of IEEE 754 for other
widths, and the ones without negative zero of B. Noune et al., "8-bit numerical formats for deep neural networks"
(2022). Numbers are rounded to the nearest, ties to even. Numbers beyond the largest one become an infinity, or NaN if
the format has no infinity, as in XLA and ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named

_func, _arith = host.dialect("func"), host.dialect("arith")
_EXTENSION, _TRUNCATION = "arith.extf", "arith.truncf"


@dataclass(frozen=True, slots=True)
class _Format:
    """A float format: the bits of its mantissa, its exponent bias, and the codes of special values.

    Attributes:
        largest: the code of the largest number.
        overflow: the code for numbers beyond the largest one: infinity or NaN.
        nan: a code of NaN.
    """

    name: str
    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int

    @property
    def has_infinity(self) -> bool:
        return self.overflow != self.nan

    @property
    def has_negative_zero(self) -> bool:
        return self.nan != 0x80

    @property
    def least_normal(self) -> int:
        """The bits, as an f32, of the smallest normal number of the format."""
        return (128 - self.bias) << 23

    @property
    def subnormal_unit(self) -> int:
        """The bits of an f32 whose unit in the last place is the unit of the format's subnormal numbers."""
        return (151 - self.bias - self.mantissa) << 23


_FORMATS = {
    one.name: one
    for one in (
        _Format("f8E3M4", 4, 3, 0x6F, 0x70, 0x78),
        _Format("f8E4M3", 3, 7, 0x77, 0x78, 0x7C),
        _Format("f8E4M3B11FNUZ", 3, 11, 0x7F, 0x80, 0x80),
        _Format("f8E4M3FN", 3, 7, 0x7E, 0x7F, 0x7F),
        _Format("f8E4M3FNUZ", 3, 8, 0x7F, 0x80, 0x80),
        _Format("f8E5M2", 2, 15, 0x7B, 0x7C, 0x7E),
        _Format("f8E5M2FNUZ", 2, 16, 0x7F, 0x80, 0x80),
    )
}
TYPES = tuple(_FORMATS)
"""The names of the formats in MLIR."""
_F32_NAN = 0x7FC00000


def convert_by_integers(module: Any) -> None:
    """Replaces the conversions of floats of 8 bits in place; conversions from f64 must already be through f32."""
    functions: dict[str, str] = {}
    for op in operations_named(module, _EXTENSION, _TRUNCATION):
        (value,), result = op.operands, op.results[0]
        with ir.InsertionPoint(op), op.location:
            wide = value
            if (format_ := _FORMATS.get(str(value.type))) is not None:
                name = f"__mlir_shard_f32_of_{format_.name}"
                functions[name] = _to_f32(name, format_)
                wide = _call(name, ir.F32Type.get(), _arith.bitcast(_i8(), value))
            if (format_ := _FORMATS.get(str(result.type))) is not None:
                name = f"__mlir_shard_{format_.name}_of_f32"
                functions[name] = _from_f32(name, format_)
                made = _arith.bitcast(result.type, _call(name, _i8(), _as_f32(wide)))
            elif wide is not value:
                made = _from(wide, result.type)
            else:
                continue
        result.replace_all_uses_with(made)
        op.erase()
    for text in functions.values():
        module.body.append(ir.Operation.parse(text))


def _as_f32(value: Any) -> Any:
    return value if isinstance(value.type, ir.F32Type) else _arith.extf(ir.F32Type.get(), value)


def _from(value: Any, type_: Any) -> Any:
    """Converts an f32 to another type, which represents all numbers of 8 bits exactly."""
    if value.type == type_:
        return value
    return (_arith.extf if type_.width > 32 else _arith.truncf)(type_, value)


def _call(name: str, type_: Any, value: Any) -> Any:
    return _func.CallOp([type_], name, [value]).result


def _i8() -> Any:
    return ir.IntegerType.get_signless(8)


def _to_f32(name: str, of: _Format) -> str:
    """Returns the text of a function. A multiplication by a power of two rebiases the exponent, also of subnormals."""
    if of.has_infinity:
        special = f"""
  %infinite_exponent = arith.constant 0x7f800000 : i32
  %special = arith.ori %shifted, %infinite_exponent : i32
  %least_special = arith.constant {of.overflow} : i32
  %is_special = arith.cmpi uge, %magnitude, %least_special : i32"""
    else:
        special = f"""
  %special = arith.constant {_F32_NAN} : i32
  %nan = arith.constant {of.nan} : i32
  %is_special = arith.cmpi eq, {"%magnitude" if of.has_negative_zero else "%bits"}, %nan : i32"""
    return f"""
func.func private @{name}(%code: i8) -> f32 {{
  %bits = arith.extui %code : i8 to i32
  %magnitude_mask = arith.constant 127 : i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %shift = arith.constant {23 - of.mantissa} : i32
  %shifted = arith.shli %magnitude, %shift : i32
  %unscaled = arith.bitcast %shifted : i32 to f32
  %scale = arith.constant {(254 - of.bias) << 23:#x} : f32
  %scaled = arith.mulf %unscaled, %scale : f32
  %finite = arith.bitcast %scaled : f32 to i32{special}
  %unsigned = arith.select %is_special, %special, %finite : i32
  %sign = arith.xori %bits, %magnitude : i32
  %c24 = arith.constant 24 : i32
  %sign_bit = arith.shli %sign, %c24 : i32
  %result = arith.ori %unsigned, %sign_bit : i32
  %float = arith.bitcast %result : i32 to f32
  return %float : f32
}}"""


def _from_f32(name: str, of: _Format) -> str:
    """Returns the text of a function. It rounds subnormals by adding a number whose last place is their unit."""
    shift = 23 - of.mantissa
    rebias = (1 << (shift - 1)) - 1 - ((127 - of.bias) << 23)
    if of.has_negative_zero:
        signed = "\n  %result = arith.ori %unsigned, %sign_bit : i32"
    else:
        # The code of negative zero is the code of NaN, so zero must not get a sign.
        signed = """
  %zero = arith.constant 0 : i32
  %is_zero = arith.cmpi eq, %unsigned, %zero : i32
  %own_sign = arith.select %is_zero, %zero, %sign_bit : i32
  %result = arith.ori %unsigned, %own_sign : i32"""
    return f"""
func.func private @{name}(%float: f32) -> i8 {{
  %bits = arith.bitcast %float : f32 to i32
  %magnitude_mask = arith.constant 0x7fffffff : i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %sign = arith.xori %bits, %magnitude : i32

  %absolute = arith.bitcast %magnitude : i32 to f32
  %unit = arith.constant {of.subnormal_unit:#x} : f32
  %unit_bits = arith.bitcast %unit : f32 to i32
  %added = arith.addf %absolute, %unit : f32
  %added_bits = arith.bitcast %added : f32 to i32
  %subnormal = arith.subi %added_bits, %unit_bits : i32

  %c1 = arith.constant 1 : i32
  %shift = arith.constant {shift} : i32
  %rebias = arith.constant {rebias} : i32
  %kept = arith.shrui %magnitude, %shift : i32
  %is_odd = arith.andi %kept, %c1 : i32
  %rebiased = arith.addi %magnitude, %rebias : i32
  %rounded = arith.addi %rebiased, %is_odd : i32
  %normal = arith.shrui %rounded, %shift : i32

  %least_normal = arith.constant {of.least_normal} : i32
  %is_subnormal = arith.cmpi ult, %magnitude, %least_normal : i32
  %finite = arith.select %is_subnormal, %subnormal, %normal : i32
  %largest = arith.constant {of.largest} : i32
  %is_beyond = arith.cmpi ugt, %finite, %largest : i32
  %overflow = arith.constant {of.overflow} : i32
  %or_beyond = arith.select %is_beyond, %overflow, %finite : i32
  %infinity = arith.constant 0x7f800000 : i32
  %is_nan = arith.cmpi ugt, %magnitude, %infinity : i32
  %nan = arith.constant {of.nan} : i32
  %unsigned = arith.select %is_nan, %nan, %or_beyond : i32
  %c24 = arith.constant 24 : i32
  %sign_bit = arith.shrui %sign, %c24 : i32{signed}
  %code = arith.trunci %result : i32 to i8
  return %code : i8
}}"""
