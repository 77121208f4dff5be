# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms as products with their matrices, on real and imaginary parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import stablehlo
from mlir_shard.runtime import index_arithmetic as index
from mlir_shard.runtime.stablehlo_loops import loops

_bindings = host.module("_mlir_libs._stablehlo")
_FORMS = ("IRFFT", "RFFT", "IFFT", "FFT")


@dataclass(frozen=True, slots=True)
class _Complex:
    """Complex numbers as two real tensors; `imaginary` is None where all is real."""

    real: Any
    imaginary: Any | None


def fft(op: Any) -> list[Any]:
    """The transform along the last dimensions, as many as lengths are given."""
    (operand,) = op.operands
    form = next(one for one in _FORMS if one in str(op.attributes["fft_type"]))
    lengths = list(op.attributes["fft_length"])
    rank = len(operand.type.shape)
    *first, last = range(rank - len(lengths), rank)
    if 0 in (*operand.type.shape, *op.results[0].type.shape):
        return [stablehlo.splat(op.results[0].type, 0)]
    parts = _parts(operand)
    if form == "RFFT":
        parts = _along(parts, last, lengths[-1], lengths[-1] // 2 + 1, sign=-1)
    for dim in first if "R" in form else [*first, last]:
        parts = _along(parts, dim, parts.real.type.shape[dim], parts.real.type.shape[dim], -1 if form[0] != "I" else 1)
    if form[0] == "I":
        parts = _scaled(parts, 1 / math.prod(lengths))
    if form == "IRFFT":
        return [_to_real(parts, last, lengths[-1])]
    return [stablehlo.build("complex", op.results[0].type, parts.real, parts.imaginary)]


def _parts(operand: Any) -> _Complex:
    type_ = operand.type
    if not isinstance(type_.element_type, host.ir.ComplexType):
        return _Complex(operand, None)
    part = stablehlo.tensor(type_.element_type.element_type, *type_.shape)
    return _Complex(*(stablehlo.build(name, part, operand) for name in ("real", "imag")))


def _along(parts: _Complex, dim: int, length: int, count: int, sign: int) -> _Complex:
    """The first `count` sums along a dimension, in number k with element m times exp(sign 2πi k m / length)."""
    cosines, sines = _matrices(parts.real.type.element_type, length, parts.real.type.shape[dim], count, sign)
    real, imaginary = _product(parts.real, cosines, dim), _product(parts.real, sines, dim)
    if parts.imaginary is None:
        return _Complex(real, imaginary)
    crossed = _product(parts.imaginary, sines, dim), _product(parts.imaginary, cosines, dim)
    return _Complex(_binary("subtract", real, crossed[0]), _binary("add", imaginary, crossed[1]))


def _to_real(parts: _Complex, dim: int, length: int) -> Any:
    """The real numbers of which this is the first half of the transform; the second half is the first's conjugate."""
    count = parts.real.type.shape[dim]
    # Of the conjugate pair of numbers k and length - k only the first is there.
    cosines, sines = _matrices(parts.real.type.element_type, length, count, length, 1, is_half=True)
    return _binary("subtract", _product(parts.real, cosines, dim), _product(parts.imaginary, sines, dim))


def _matrices(
    element_type: Any, length: int, rows: int, columns: int, sign: int, *, is_half: bool = False
) -> tuple[Any, Any]:
    """Cosines and sines of sign 2π r c / length, computed in f64; for `is_half` a row with a partner counts twice.

    They are made in a loop, as they would otherwise be computed anew for each product.
    """
    wide, type_ = stablehlo.tensor(host.ir.F64Type.get()), stablehlo.tensor(element_type, rows, columns)

    def entry(position: list[Any], carried: list[Any]) -> list[Any]:
        row, column = position
        turns = index.remainder(index.multiply(row, column), index.constant(length))
        number = stablehlo.convert(loops.boxed(index.to_integer(turns, 64)), host.ir.F64Type.get())
        angle = _binary("multiply", number, stablehlo.splat(wide, sign * 2 * math.pi / length))
        values = [stablehlo.build(name, wide, angle) for name in ("cosine", "sine")]
        if is_half:
            is_alone = loops.either(
                index.equal(row, index.constant(0)), index.equal(index.add(row, row), index.constant(length))
            )
            weights = [loops.unboxed(stablehlo.splat(wide, weight)) for weight in (1, 2)]
            weight = loops.boxed(index.choose(is_alone, *weights))
            values = [_binary("multiply", value, weight) for value in values]
        narrow = [stablehlo.convert(value, element_type) for value in values]
        return [loops.write(value, into, position) for value, into in zip(narrow, carried, strict=True)]

    cosines, sines = loops.nest([rows, columns], [loops.empty(type_), loops.empty(type_)], entry)
    return cosines, sines


def _product(value: Any, matrix: Any, dim: int) -> Any:
    """The sum over a dimension of the value and the rows of the matrix; the columns are that dimension then."""
    shape = list(value.type.shape)
    rest, columns = [*shape[:dim], *shape[dim + 1 :]], matrix.type.shape[1]
    numbers = _bindings.DotDimensionNumbers.get(
        lhs_batching_dimensions=[],
        rhs_batching_dimensions=[],
        lhs_contracting_dimensions=[dim],
        rhs_contracting_dimensions=[0],
    )
    type_ = stablehlo.with_shape(value.type, [*rest, columns])
    product = stablehlo.build("dot_general", type_, value, matrix, dot_dimension_numbers=numbers)
    return stablehlo.transpose(product, [*range(dim), len(rest), *range(dim, len(rest))])


def _scaled(parts: _Complex, factor: float) -> _Complex:
    factors = stablehlo.splat(parts.real.type, factor)
    return _Complex(*(_binary("multiply", part, factors) for part in (parts.real, parts.imaginary)))


def _binary(name: str, left: Any, right: Any) -> Any:
    return stablehlo.build(name, left.type, left, right)
