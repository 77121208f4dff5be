# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares plans of contractions, which NumPy executes on memory of any layout, with `numpy.einsum`."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from mlir_shard.runtime.lowering.blas.gemm_plan import Factor, GemmPlan, Operand, plan_gemm

# Flags of a, b and c, which are 1 if the operand has the loops of a kind.
KINDS = {"batch": (1, 1, 1), "rows": (1, 0, 1), "columns": (0, 1, 1), "summed": (1, 1, 0)}


def matrix(flat: np.ndarray, offset: int, rows: int, columns: int, leading: int) -> np.ndarray:
    """Returns a row-major matrix in memory."""
    return as_strided(flat[offset:], (rows, columns), (leading * flat.itemsize, flat.itemsize))


def factor(flat: np.ndarray, offset: int, rows: int, columns: int, form: Factor) -> np.ndarray:
    if form.is_transposed:
        return matrix(flat, offset, columns, rows, form.leading).T
    return matrix(flat, offset, rows, columns, form.leading)


def carry_out(plan: GemmPlan, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Executes a plan, as BLAS in loops does, on the memory of the operands of the contraction."""
    left, right = (b, a) if plan.swaps else (a, b)
    for place in product(*(range(loop.size) for loop in plan.loops)):
        at = [sum(i * loop.steps[k] for i, loop in zip(place, plan.loops, strict=True)) for k in range(3)]
        out = matrix(c, at[2], plan.m, plan.n, plan.c_leading)
        out += factor(left, at[0], plan.m, plan.k, plan.a) @ factor(right, at[1], plan.k, plan.n, plan.b)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, ...]], list[list[int]], list[int]]:
    """Draws the sizes of loops, the loops and strides of each operand, and the elements of its memory."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    sizes = [draw(st.sampled_from((1, 2, 3, 4))) for _ in kinds]
    maps, strides, spans = [], [], []
    for operand in range(3):
        loops = draw(st.permutations([loop for loop, kind in enumerate(kinds) if KINDS[kind][operand]]))
        in_memory = loops if draw(st.booleans()) else draw(st.permutations(loops))
        span, stride_of = draw(st.sampled_from((1, 1, 1, 2))), {}
        for loop in reversed(in_memory):
            stride_of[loop] = span
            span *= sizes[loop] + draw(st.sampled_from((0, 0, 0, 1)))
        maps.append(tuple(loops))
        strides.append([stride_of[loop] for loop in loops])
        spans.append(span)
    return sizes, maps, strides, spans


@given(layouts())
def test_plans_compute_the_contraction(layout: tuple) -> None:
    sizes, maps, strides, spans = layout
    plan = plan_gemm(sizes, *(Operand(loops, tuple(of)) for loops, of in zip(maps, strides, strict=True)))
    if plan is None:
        return
    draw = np.random.default_rng(0)
    a, b, c = (draw.integers(-4, 5, span).astype(np.float64) for span in spans)
    views = [
        as_strided(flat, [sizes[loop] for loop in loops], [8 * one for one in of])
        for flat, loops, of in zip((a, b, c), maps, strides, strict=True)
    ]
    letters = ["".join("ijklm"[loop] for loop in loops) for loops in maps]
    expected = views[2] + np.einsum(f"{letters[0]},{letters[1]}->{letters[2]}", *views[:2])
    untouched = np.ones(c.shape, dtype=bool)
    as_strided(untouched, views[2].shape, strides[2])[...] = False
    kept = c[untouched].copy()
    carry_out(plan, a, b, c)
    np.testing.assert_array_equal(views[2], expected)
    np.testing.assert_array_equal(c[untouched], kept)
    assert prod(sizes) == plan.m * plan.n * plan.k * prod(loop.size for loop in plan.loops)


@given(layouts())
def test_contiguous_operands_in_the_order_of_loops_have_a_plan(layout: tuple) -> None:
    sizes, maps, _, _ = layout
    order = [set.intersection(*map(set, maps)), set(maps[0]) & set(maps[2]), set(maps[1]) & set(maps[2])]
    batch = sorted(order[0])
    rows, columns = (sorted(one - order[0]) for one in order[1:])
    summed = sorted((set(maps[0]) & set(maps[1])) - order[0])
    operands = []
    for loops in (batch + rows + summed, batch + summed + columns, batch + rows + columns):
        shape = [sizes[loop] for loop in loops]
        operands.append(Operand(tuple(loops), tuple(prod(shape[place + 1 :]) for place in range(len(shape)))))
    plan = plan_gemm(sizes, *operands)
    assert plan is not None
    assert (plan.m, plan.n, plan.k) in {
        (prod(sizes[one] for one in m), prod(sizes[one] for one in n), prod(sizes[one] for one in summed))
        for m, n in ((rows, columns), (columns, rows))
    } or prod(sizes[one] for one in batch) > 1


@pytest.mark.parametrize(
    ("a", "b", "c", "forms"),
    [
        (("ik", (32, 1)), ("kj", (24, 1)), ("ij", (24, 1)), (False, False)),
        (("ik", (1, 16)), ("kj", (24, 1)), ("ij", (24, 1)), (True, False)),
        (("ik", (32, 1)), ("kj", (1, 32)), ("ij", (24, 1)), (False, True)),
    ],
)
def test_transposed_operands_are_not_copied(a: tuple, b: tuple, c: tuple, forms: tuple[bool, bool]) -> None:
    operands = [Operand(tuple("ijk".index(one) for one in letters), strides) for letters, strides in (a, b, c)]
    plan = plan_gemm([16, 24, 32], *operands)
    assert plan is not None
    assert (plan.m, plan.n, plan.k, plan.loops, plan.swaps) == (16, 24, 32, (), False)
    assert (plan.a.is_transposed, plan.b.is_transposed) == forms


def test_a_transposed_result_swaps_the_operands() -> None:
    plan = plan_gemm([16, 24, 32], Operand((0, 2), (32, 1)), Operand((2, 1), (24, 1)), Operand((0, 1), (1, 16)))
    assert plan is not None
    assert (plan.m, plan.n, plan.k, plan.swaps, plan.c_leading) == (24, 16, 32, True, 16)


def test_memory_without_contiguous_rows_has_no_plan() -> None:
    operands = Operand((0, 2), (64, 2)), Operand((2, 1), (24, 1)), Operand((0, 1), (24, 1))
    assert plan_gemm([16, 24, 32], *operands) is None
