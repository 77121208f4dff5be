# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point numbers as integers that are ordered as they are, at the current insertion point.

MPI compares floats by < and >, which leave out NaN and take -0 and 0 for equal; so what it gives depends on the order
of the ranks. As an integer -0 is below 0, and NaN is the greatest or the least, whichever a reduction looks for.
"""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

_arith = host.dialect("arith")

_LESS, _UNORDERED = 2, 14


def integers(value: Any, *, nan_is_greatest: bool) -> Any:
    """A tensor of f32 or f64 as integers of the same width; NaN is the greatest of them, or else the least."""
    type_ = _integer_type(value.type)
    ordered = _with_magnitude_flipped(_arith.bitcast(type_, value))
    most = 2 ** (type_.element_type.width - 1)
    for_nan = _splat(type_, most - 1 if nan_is_greatest else -most)
    return _arith.select(_arith.cmpf(_UNORDERED, value, value), for_nan, ordered)


def floats(ordered: Any, type_: Any) -> Any:
    """The tensor of `type_` that was made such integers."""
    return _arith.bitcast(type_, _with_magnitude_flipped(ordered))


def _with_magnitude_flipped(bits: Any) -> Any:
    """All bits but the sign flipped where that is set: the greater a negative float, the less its magnitude."""
    magnitude = _splat(bits.type, 2 ** (bits.type.element_type.width - 1) - 1)
    is_negative = _arith.cmpi(_LESS, bits, _splat(bits.type, 0))
    return _arith.select(is_negative, _arith.xori(bits, magnitude), bits)


def _integer_type(type_: Any) -> Any:
    return ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(type_.element_type.width))


def _splat(type_: Any, value: int) -> Any:
    number = ir.IntegerAttr.get(type_.element_type, value)
    return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, number)).result
