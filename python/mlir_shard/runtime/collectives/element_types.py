# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types that MPI can send and reduce, as replacements of types that it cannot.

A floating-point number is mapped to an integer that preserves the order, or converted to another type and back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.launch import mpi_library

_arith = host.dialect("arith")
_LESS = 2
_UNORDERED = 14


def integers(value: Any, *, nan_is_greatest: bool) -> Any:
    """Returns a tensor of f32 or f64 as integers in the same order; NaN is the greatest of them, or else the least."""
    type_ = _with_elements(value.type, ir.IntegerType.get_signless(value.type.element_type.width))
    ordered = _with_magnitude_flipped(_arith.bitcast(type_, value))
    most = 2 ** (type_.element_type.width - 1)
    for_nan = _splat(type_, most - 1 if nan_is_greatest else -most)
    return _arith.select(_arith.cmpf(_UNORDERED, value, value), for_nan, ordered)


def floats(ordered: Any, type_: Any) -> Any:
    """Returns the tensor of `type_` that `integers` has mapped to `ordered`."""
    return _arith.bitcast(type_, _with_magnitude_flipped(ordered))


def _with_magnitude_flipped(bits: Any) -> Any:
    """Flips all bits but the sign of negative numbers: a greater negative float has a smaller magnitude."""
    magnitude = _splat(bits.type, 2 ** (bits.type.element_type.width - 1) - 1)
    is_negative = _arith.cmpi(_LESS, bits, _splat(bits.type, 0))
    return _arith.select(is_negative, _arith.xori(bits, magnitude), bits)


def _splat(type_: Any, value: int) -> Any:
    number = ir.IntegerAttr.get(type_.element_type, value)
    return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, number)).result


_CARRIED_BITS = (8, 16, 32, 64)
_ORDERED = ("max", "min")


@dataclass(frozen=True, slots=True)
class Carrier:
    """The conversion of a tensor before and after a collective; both build at the current insertion point.

    reduction: the reduction of the converted tensors; empty if they are only moved.
    """

    enter: Callable[[Any], Any]
    leave: Callable[[Any], Any]
    reduction: str = ""


def for_moving(element_type: Any) -> Carrier | None:
    """Returns the carrier for a tensor that is only moved; None if none exists."""
    if buffers.is_movable(element_type):
        return _as_is("")
    if isinstance(element_type, ir.IntegerType) and element_type.width < 8:
        return _narrow(element_type)
    if isinstance(element_type, ir.IntegerType) and element_type.width in _CARRIED_BITS:
        return _signless(element_type)
    return None


def for_reducing(element_type: Any, reduction: str) -> Carrier | None:
    """Returns the carrier for a tensor that is reduced; None if none exists.

    reduction: the name in the dialect `shard`. A sum of i1 is their `or`, as in StableHLO.
    """
    if reduction not in mpi_library.REDUCTIONS:
        return None
    if reduction.startswith("bitwise") and isinstance(element_type, ir.FloatType):
        return None
    if isinstance(element_type, ir.FloatType) and element_type.width <= 64 and reduction in _ORDERED:
        return _ordered(element_type, reduction)
    if _is_carried(element_type):
        return _as_is(reduction)
    if isinstance(element_type, ir.IndexType):
        return _by(_arith.index_cast, _arith.index_cast, element_type, ir.IntegerType.get_signless(64), reduction)
    if isinstance(element_type, ir.FloatType) and element_type.width < 32:
        return _by(_arith.extf, _arith.truncf, element_type, ir.F32Type.get(), reduction)
    if not isinstance(element_type, ir.IntegerType):
        return None
    if element_type.is_signless and element_type.width == 1:
        return _narrow(element_type, "max" if reduction == "sum" else reduction)
    if element_type.width < 8:
        return _narrow(element_type, reduction)
    if element_type.is_signed and element_type.width in _CARRIED_BITS:
        return _signless(element_type, reduction)
    if element_type.is_unsigned and element_type.width in _CARRIED_BITS:
        return _with_sign(element_type, reduction) if reduction in _ORDERED else _signless(element_type, reduction)
    return None


def _is_carried(element_type: Any) -> bool:
    if isinstance(element_type, ir.IntegerType):
        return element_type.is_signless and element_type.width in _CARRIED_BITS
    return isinstance(element_type, (ir.F32Type, ir.F64Type))


def _as_is(reduction: str) -> Carrier:
    return Carrier(lambda value: value, lambda value: value, reduction)


def _by(
    enter: Callable[..., Any], leave: Callable[..., Any], element_type: Any, carried_type: Any, reduction: str = ""
) -> Carrier:
    return Carrier(
        lambda value: enter(_with_elements(value.type, carried_type), value),
        lambda value: leave(_with_elements(value.type, element_type), value),
        reduction,
    )


def _signless(element_type: Any, reduction: str = "") -> Carrier:
    """Changes only the type; the casts fold with those around operations that StableHLO's lowering makes signless."""
    return _by(_cast, _cast, element_type, ir.IntegerType.get_signless(element_type.width), reduction)


def _narrow(element_type: Any, reduction: str = "") -> Carrier:
    """Extends integers of less than 8 bits to i8, whose signed comparison orders all of them correctly."""
    narrow = ir.IntegerType.get_signless(element_type.width)
    is_signed = element_type.width > 1 and not element_type.is_unsigned
    inner = _by(_arith.extsi if is_signed else _arith.extui, _arith.trunci, narrow, ir.IntegerType.get_signless(8))
    if element_type == narrow:
        return Carrier(inner.enter, inner.leave, reduction)
    outer = _signless(element_type)
    return Carrier(
        lambda value: inner.enter(outer.enter(value)), lambda value: outer.leave(inner.leave(value)), reduction
    )


def _with_sign(element_type: Any, reduction: str) -> Carrier:
    """Flips the most significant bit, so that the signed comparison orders unsigned integers correctly."""
    inner = _signless(element_type)

    def flip(value: Any) -> Any:
        return _arith.xori(value, _splat(value.type, -(2 ** (element_type.width - 1))))

    return Carrier(lambda value: flip(inner.enter(value)), lambda value: inner.leave(flip(value)), reduction)


def _ordered(element_type: Any, reduction: str) -> Carrier:
    """Maps floats to integers: MPI's own comparison drops NaN."""
    wide = element_type if element_type.width >= 32 else ir.F32Type.get()

    def enter(value: Any) -> Any:
        extended = value if wide == element_type else _arith.extf(_with_elements(value.type, wide), value)
        return integers(extended, nan_is_greatest=reduction == "max")

    def leave(value: Any) -> Any:
        found = floats(value, _with_elements(value.type, wide))
        return found if wide == element_type else _arith.truncf(_with_elements(value.type, element_type), found)

    return Carrier(enter, leave, reduction)


def _cast(type_: Any, value: Any) -> Any:
    return ir.Operation.create("builtin.unrealized_conversion_cast", results=[type_], operands=[value]).result


def _with_elements(type_: Any, element_type: Any) -> Any:
    return ir.RankedTensorType.get(type_.shape, element_type)


def convert(value: Any, element_type: Any) -> Any | None:
    """Converts a tensor to another element type at the current insertion point; returns None if it cannot.

    Signless integers are signed, except i1, which is 0 or 1. Lossy conversions round or truncate.
    """
    operation = _operation(value.type.element_type, element_type)
    return None if operation is None else operation(_with_elements(value.type, element_type), value)


def _operation(source: Any, target: Any) -> Any | None:
    if isinstance(source, ir.IndexType) or isinstance(target, ir.IndexType):
        return _arith.index_cast if all(map(_is_signless_or_index, (source, target))) else None
    if isinstance(source, ir.FloatType) and isinstance(target, ir.FloatType):
        if source.width == target.width:
            return None
        return _arith.extf if source.width < target.width else _arith.truncf
    is_truth = isinstance(source, ir.IntegerType) and source.width == 1
    if _is_signless_or_index(source) and isinstance(target, ir.FloatType):
        return _arith.uitofp if is_truth else _arith.sitofp
    if isinstance(source, ir.FloatType) and _is_signless_or_index(target):
        return _arith.fptosi
    if _is_signless_or_index(source) and _is_signless_or_index(target):
        if source.width > target.width:
            return _arith.trunci
        return _arith.extui if is_truth else _arith.extsi
    return None


def _is_signless_or_index(element_type: Any) -> bool:
    if isinstance(element_type, ir.IntegerType):
        return bool(element_type.is_signless)
    return isinstance(element_type, ir.IndexType)
