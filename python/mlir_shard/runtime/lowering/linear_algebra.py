# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cholesky factors, triangular systems and Fourier transforms of StableHLO, for each matrix or row of a batch.

Factors are computed column by column; a transform is a product with its matrix, on real and imaginary parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import stablehlo
from mlir_shard.ir.stablehlo import binary
from mlir_shard.runtime.lowering import element_loops

# The element of a matrix at a row and a column.
_Entry = Callable[[Any, Any], Any]


def cholesky(op: Any) -> list[Any]:
    """L, of which A is L times its adjoint, or that adjoint; zero in the other triangle, where A is not read."""
    (matrices,) = op.operands
    is_lower = _flag(op, "lower")
    *batch, size, _ = matrices.type.shape
    zero = stablehlo.splat(matrices.type, 0)

    def factor(at: list[Any], carried: list[Any]) -> list[Any]:
        def entry(tensor: Any) -> _Entry:
            """Of a lower triangle, which the tensor may hold as its adjoint."""
            if is_lower:
                return lambda row, column: element_loops.read_element(tensor, [*at, row, column])
            return lambda row, column: _conjugate(element_loops.read_element(tensor, [*at, column, row]))

        def put(scalar: Any, tensor: Any, row: Any, column: Any) -> Any:
            if is_lower:
                return element_loops.write(scalar, tensor, [*at, row, column])
            return element_loops.write(_conjugate(scalar), tensor, [*at, column, row])

        def left(tensor: Any, row: Any, column: Any) -> Any:
            """What columns before leave of an element."""
            known = entry(tensor)
            return _minus_sum(
                entry(matrices)(row, column),
                index.constant(0),
                column,
                lambda one: binary("multiply", known(row, one), _conjugate(known(column, one))),
            )

        def of_column(column: Any, now: list[Any]) -> list[Any]:
            square = left(now[0], column, column)
            root = stablehlo.build("sqrt", square.type, square)
            below = index.add(column, index.constant(1))
            return element_loops.loop(
                below,
                index.constant(size),
                [put(root, now[0], column, column)],
                lambda row, held: [put(binary("divide", left(held[0], row, column), root), held[0], row, column)],
            )

        return element_loops.loop(index.constant(0), index.constant(size), carried, of_column)

    return element_loops.nest(batch, [zero], factor)


def triangular_solve(op: Any) -> list[Any]:
    """X of op(A) X = B, or of X op(A) = B; only one triangle of A is read."""
    matrices, right = op.operands
    is_left, is_unit = _flag(op, "left_side"), _flag(op, "unit_diagonal")
    form = str(op.attributes["transpose_a"])
    is_adjoint, is_transposed = "ADJOINT" in form, "NO_TRANSPOSE" not in form
    # A system from the right is that of the transposed matrix from the left.
    is_flipped = is_transposed == is_left
    is_lower = _flag(op, "lower") != is_flipped
    *batch, rows, columns = right.type.shape
    size, others = (rows, columns) if is_left else (columns, rows)
    if 0 in right.type.shape:
        return [right]
    last = index.constant(size - 1)

    def solve(at: list[Any], carried: list[Any]) -> list[Any]:
        *of_batch, line = at

        def entry(row: Any, column: Any) -> Any:
            place = [column, row] if is_flipped else [row, column]
            element = element_loops.read_element(matrices, [*of_batch, *place])
            return _conjugate(element) if is_adjoint else element

        def place(position: Any) -> list[Any]:
            return [*of_batch, position, line] if is_left else [*of_batch, line, position]

        def of_row(count: Any, now: list[Any]) -> list[Any]:
            row = count if is_lower else index.subtract(last, count)
            start = index.constant(0) if is_lower else index.add(row, index.constant(1))
            stop = row if is_lower else index.constant(size)
            known = now[0]
            rest = _minus_sum(
                element_loops.read_element(right, place(row)),
                start,
                stop,
                lambda one: binary("multiply", entry(row, one), element_loops.read_element(known, place(one))),
            )
            return [
                element_loops.write(rest if is_unit else binary("divide", rest, entry(row, row)), known, place(row))
            ]

        return element_loops.loop(index.constant(0), index.constant(size), carried, of_row)

    return element_loops.nest([*batch, others], [element_loops.empty(right.type)], solve)


def _minus_sum(whole: Any, start: Any, stop: Any, term: Callable[[Any], Any]) -> Any:
    def step(one: Any, carried: list[Any]) -> list[Any]:
        return [
            element_loops.unboxed(stablehlo.build("subtract", whole.type, element_loops.boxed(carried[0]), term(one)))
        ]

    return element_loops.boxed(element_loops.loop(start, stop, [element_loops.unboxed(whole)], step)[0])


def _flag(op: Any, name: str) -> bool:
    return name in op.attributes and bool(ir.BoolAttr(op.attributes[name]).value)


def _conjugate(scalar: Any) -> Any:
    if not isinstance(scalar.type.element_type, host.ir.ComplexType):
        return scalar
    part = stablehlo.tensor(scalar.type.element_type.element_type)
    real, imaginary = (stablehlo.build(name, part, scalar) for name in ("real", "imag"))
    return stablehlo.build("complex", scalar.type, real, stablehlo.build("negate", part, imaginary))


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
    return _Complex(binary("subtract", real, crossed[0]), binary("add", imaginary, crossed[1]))


def _to_real(parts: _Complex, dim: int, length: int) -> Any:
    """The real numbers of which this is the first half of the transform; the second half is the first's conjugate."""
    count = parts.real.type.shape[dim]
    # Of the conjugate pair of numbers k and length - k only the first is there.
    cosines, sines = _matrices(parts.real.type.element_type, length, count, length, 1, is_half=True)
    return binary("subtract", _product(parts.real, cosines, dim), _product(parts.imaginary, sines, dim))


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
        number = stablehlo.convert(element_loops.boxed(index.to_integer(turns, 64)), host.ir.F64Type.get())
        angle = binary("multiply", number, stablehlo.splat(wide, sign * 2 * math.pi / length))
        values = [stablehlo.build(name, wide, angle) for name in ("cosine", "sine")]
        if is_half:
            is_alone = element_loops.either(
                index.equal(row, index.constant(0)), index.equal(index.add(row, row), index.constant(length))
            )
            weights = [element_loops.unboxed(stablehlo.splat(wide, weight)) for weight in (1, 2)]
            weight = element_loops.boxed(index.choose(is_alone, *weights))
            values = [binary("multiply", value, weight) for value in values]
        narrow = [stablehlo.convert(value, element_type) for value in values]
        return [element_loops.write(value, into, position) for value, into in zip(narrow, carried, strict=True)]

    cosines, sines = element_loops.nest(
        [rows, columns], [element_loops.empty(type_), element_loops.empty(type_)], entry
    )
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
    return _Complex(*(binary("multiply", part, factors) for part in (parts.real, parts.imaginary)))
