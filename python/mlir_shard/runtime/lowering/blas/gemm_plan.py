# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans for contractions of strided memory: loops around `gemm` of BLAS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

MOST: Final = (1 << 31) - 1
"""The largest size and stride that BLAS supports."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a contraction: the loops that index its dimensions, and their strides in elements."""

    loops: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def stride_of(self) -> Mapping[int, int]:
        """The stride of each loop that indexes the operand."""
        return dict(zip(self.loops, self.strides, strict=True))


@dataclass(frozen=True, slots=True)
class Factor:
    """A matrix argument of `gemm` in row-major order; if `is_transposed`, its transpose is in memory."""

    is_transposed: bool
    leading: int


@dataclass(frozen=True, slots=True)
class OuterLoop:
    """A loop around `gemm`, and the elements by which `a`, `b` and `c` advance in each iteration."""

    size: int
    steps: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """`c += a * b` of row-major matrices of `m` by `k`, `k` by `n` and `m` by `n` elements, in loops.

    Attributes:
        swaps: whether `a` is the contraction's second operand and `b` the first, so that the result is transposed.
        c_leading: the elements from one row of `c` to the next.
    """

    m: int
    n: int
    k: int
    a: Factor
    b: Factor
    c_leading: int
    swaps: bool
    loops: tuple[OuterLoop, ...]

    @property
    def is_of_vectors(self) -> bool:
        """Whether the call is one of `gemv`."""
        return 1 in (self.m, self.n)

    @property
    def volume(self) -> int:
        """The number of products of a call."""
        return self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class _Merged:
    """Loops that are merged into one, from the innermost outwards."""

    loops: tuple[int, ...]
    size: int
    strides: tuple[int, int]


_NONE = _Merged((), 1, (0, 0))


def plan_gemm(sizes: Sequence[int], a: Operand, b: Operand, c: Operand) -> GemmPlan | None:
    """Returns the plan with the largest matrices; None if the strides allow no plan.

    The rows or the columns of each matrix must be contiguous. This is always so for copies of the operands with their
    loops in the order of batches, rows and columns.

    Args:
        sizes: the number of iterations of each loop, all positive.
        a, b, c: the two inputs and the output.
    """
    of_a, of_b, of_c = a.stride_of, b.stride_of, c.stride_of
    loops = [loop for loop, size in enumerate(sizes) if size > 1]
    kinds = {loop: (loop in of_a, loop in of_b, loop in of_c) for loop in loops}
    if any(sum(kind) < 2 for kind in kinds.values()):
        return None
    rows = [loop for loop in loops if kinds[loop] == (True, False, True)]
    columns = [loop for loop in loops if kinds[loop] == (False, True, True)]
    summed = [loop for loop in loops if kinds[loop] == (True, True, False)]
    best: GemmPlan | None = None
    merged = (
        list(_merges(rows, sizes, of_a, of_c)),
        list(_merges(columns, sizes, of_b, of_c)),
        list(_merges(summed, sizes, of_a, of_b)),
    )
    for of_rows, of_columns, of_sums in product(*merged):
        volume = of_rows.size * of_columns.size * of_sums.size
        if best is not None and volume <= best.volume:
            continue
        inside = {*of_rows.loops, *of_columns.loops, *of_sums.loops}
        outside = [loop for loop in loops if loop not in inside]
        strides = of_a, of_b, of_c
        for swaps in (False, True):
            if swaps:
                strides = of_b, of_a, of_c
                m, n = of_columns, of_rows
                k = _Merged(of_sums.loops, of_sums.size, (of_sums.strides[1], of_sums.strides[0]))
            else:
                m, n, k = of_rows, of_columns, of_sums
            left, right = (
                _factor(m.size, k.size, m.strides[0], k.strides[0]),
                _factor(k.size, n.size, k.strides[1], n.strides[0]),
            )
            out = _factor(m.size, n.size, m.strides[1], n.strides[1])
            if left is None or right is None or out is None or out.is_transposed:
                continue
            around = tuple(OuterLoop(sizes[loop], _steps(loop, strides)) for loop in outside)
            best = GemmPlan(m.size, n.size, k.size, left, right, out.leading, swaps, around)
            break
    return best


def _steps(loop: int, strides: Sequence[Mapping[int, int]]) -> tuple[int, int, int]:
    a, b, c = (one.get(loop, 0) for one in strides)
    return a, b, c


def _merges(
    loops: Sequence[int], sizes: Sequence[int], first: Mapping[int, int], second: Mapping[int, int]
) -> Iterator[_Merged]:
    """Yields the possible merges of loops that two operands have in common, from each loop outwards."""
    if not loops:
        yield _NONE
    for innermost in loops:
        merged = _Merged((innermost,), sizes[innermost], (first[innermost], second[innermost]))
        while True:
            yield merged
            wanted = merged.strides[0] * merged.size, merged.strides[1] * merged.size
            outer = [one for one in loops if one not in merged.loops and (first[one], second[one]) == wanted]
            if not outer:
                break
            merged = _Merged((outer[0], *merged.loops), merged.size * sizes[outer[0]], merged.strides)


def _factor(rows: int, columns: int, row_stride: int, column_stride: int) -> Factor | None:
    """Returns the matrix with these strides; None if `gemm` does not support it. Strides of size 1 do not matter."""
    row_stride, column_stride = row_stride if rows > 1 else 0, column_stride if columns > 1 else 0
    if max(rows, columns, row_stride, column_stride) > MOST:
        return None
    if column_stride in (0, 1) and (rows == 1 or row_stride >= columns):
        return Factor(False, max(row_stride, columns, 1))
    if row_stride in (0, 1) and (columns == 1 or column_stride >= rows):
        return Factor(True, max(column_stride, rows, 1))
    return None
