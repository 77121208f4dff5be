# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites StableHLO's cholesky and triangular_solve to loops over the columns or rows of each matrix of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import stablehlo
from mlir_shard.ir.stablehlo import binary
from mlir_shard.runtime.lowering.stablehlo import element_loops

# Returns the element of a matrix at a row and a column.
_Entry = Callable[[Any, Any], Any]


def cholesky(op: Any) -> list[Any]:
    """Returns L with A = L times its adjoint, or the adjoint of L; the other triangle is zero, and A's is not read."""
    (matrices,) = op.operands
    is_lower = _flag(op, "lower")
    *batch, size, _ = matrices.type.shape
    zero = stablehlo.splat(matrices.type, 0)

    def factor(at: list[Any], carried: list[Any]) -> list[Any]:
        def entry(tensor: Any) -> _Entry:
            """Returns the entries of a lower triangle, of which the tensor may hold the adjoint."""
            if is_lower:
                return lambda row, column: element_loops.read_element(tensor, [*at, row, column])
            return lambda row, column: _conjugate(element_loops.read_element(tensor, [*at, column, row]))

        def put(scalar: Any, tensor: Any, row: Any, column: Any) -> Any:
            if is_lower:
                return element_loops.write(scalar, tensor, [*at, row, column])
            return element_loops.write(_conjugate(scalar), tensor, [*at, column, row])

        def left(tensor: Any, row: Any, column: Any) -> Any:
            """Returns an element minus the contributions of previous columns."""
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
    """Returns X of op(A) X = B, or of X op(A) = B; only one triangle of A is read."""
    matrices, right = op.operands
    is_left, is_unit = _flag(op, "left_side"), _flag(op, "unit_diagonal")
    form = str(op.attributes["transpose_a"])
    is_adjoint, is_transposed = "ADJOINT" in form, "NO_TRANSPOSE" not in form
    # A system with A on the right is the system of the transposed matrix on the left.
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
