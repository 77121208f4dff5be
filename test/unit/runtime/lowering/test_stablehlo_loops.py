# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares StableHLO that the host does not lower, or lowers incorrectly, with NumPy or XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from runtime.in_process import run

from mlir_shard.runtime.reference.verify import compare

Array = npt.NDArray[Any]
GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((5, 6))
MATRICES = GENERATOR.standard_normal((2, 4, 4))
SYMMETRIC = MATRICES @ MATRICES.transpose(0, 2, 1) + 4 * np.eye(4)
TRIANGULAR = MATRICES + 4 * np.eye(4)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_last_case_is_that_of_all_numbers_that_have_none(count: int) -> None:
    branch = "{{\n %k = stablehlo.constant dense<{0}> : tensor<i32>\n stablehlo.return %k : tensor<i32>\n}}"
    branches = ", ".join(branch.format(10 + number) for number in range(count))
    text = f"""func.func @main(%n: tensor<i32>) -> tensor<i32> {{
      %0 = "stablehlo.case"(%n) ({branches}) : (tensor<i32>) -> tensor<i32>
      return %0 : tensor<i32>
    }}"""
    for number in (-1, *range(count), count, 7):
        (found,) = run(text, np.array(number, np.int32))
        assert found == 10 + (number if 0 <= number < count else count - 1)


@pytest.mark.parametrize("is_lower", [True, False], ids=["lower", "upper"])
def test_cholesky(is_lower: bool) -> None:
    type_ = "tensor<2x4x4xf64>"
    (factor,) = run(
        f"func.func @main(%a: {type_}) -> {type_} {{\n"
        f"  %0 = stablehlo.cholesky %a, lower = {str(is_lower).lower()} : {type_}\n  return %0 : {type_}\n}}",
        np.tril(SYMMETRIC) if is_lower else np.triu(SYMMETRIC),
    )
    expected = np.linalg.cholesky(SYMMETRIC)
    np.testing.assert_allclose(factor, expected if is_lower else expected.transpose(0, 2, 1), atol=1e-12)


@pytest.mark.parametrize("is_left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("is_lower", [True, False], ids=["lower", "upper"])
@pytest.mark.parametrize("form", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("is_unit", [True, False], ids=["unit", "diagonal"])
def test_triangular_solve(is_left: bool, is_lower: bool, form: str, is_unit: bool) -> None:
    shape = (2, 4, 3) if is_left else (2, 3, 4)
    right = GENERATOR.standard_normal(shape)
    of_a, of_b = "tensor<2x4x4xf64>", f"tensor<{'x'.join(map(str, shape))}xf64>"
    flags = f"left_side = {is_left}, lower = {is_lower}, unit_diagonal = {is_unit}".lower()
    (found,) = run(
        f"func.func @main(%a: {of_a}, %b: {of_b}) -> {of_b} {{\n"
        f'  %0 = "stablehlo.triangular_solve"(%a, %b) <{{{flags}, '
        f"transpose_a = #stablehlo<transpose {form}>}}> : ({of_a}, {of_b}) -> {of_b}\n  return %0 : {of_b}\n}}",
        TRIANGULAR,
        right,
    )
    matrices = np.tril(TRIANGULAR) if is_lower else np.triu(TRIANGULAR)
    if is_unit:
        matrices = matrices * (1 - np.eye(4)) + np.eye(4)
    if form == "TRANSPOSE":
        matrices = matrices.transpose(0, 2, 1)
    np.testing.assert_allclose(matrices @ found if is_left else found @ matrices, right, atol=1e-11)


def test_a_product_that_contracts_nothing_is_repeated_as_it_is() -> None:
    (found,) = run(
        "func.func @main(%a: tensor<4x3xf64>, %b: tensor<4x3xf64>) -> tensor<2x4x3xf64> {\n"
        "  %0 = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], contracting_dims = [] x []"
        " : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3xf64>\n"
        "  %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<4x3xf64>) -> tensor<2x4x3xf64>\n"
        "  return %1 : tensor<2x4x3xf64>\n}",
        X[:4, :3],
        X[1:, 3:],
    )
    np.testing.assert_array_equal(found, np.broadcast_to(X[:4, :3] * X[1:, 3:], (2, 4, 3)))


def test_dynamic_shapes_that_are_constant() -> None:
    padded, part, rows, size = run(
        "func.func @main(%a: tensor<5x6xf64>, %i: tensor<3xi32>)"
        " -> (tensor<11x6xf64>, tensor<2x5xf64>, tensor<3x6xf64>, tensor<i32>) {\n"
        "  %one = stablehlo.constant dense<[1, 0]> : tensor<2xi32>\n"
        "  %zero = stablehlo.constant dense<0.0> : tensor<f64>\n"
        "  %0 = stablehlo.dynamic_pad %a, %zero, %one, %one, %one : (tensor<5x6xf64>, tensor<f64>, tensor<2xi32>,"
        " tensor<2xi32>, tensor<2xi32>) -> tensor<11x6xf64>\n"
        "  %limit = stablehlo.constant dense<[4, 5]> : tensor<2xi32>\n"
        "  %step = stablehlo.constant dense<[2, 1]> : tensor<2xi32>\n"
        "  %1 = stablehlo.real_dynamic_slice %a, %one, %limit, %step : (tensor<5x6xf64>, tensor<2xi32>, tensor<2xi32>,"
        " tensor<2xi32>) -> tensor<2x5xf64>\n  %sizes = stablehlo.constant dense<[1, 6]> : tensor<2xi32>\n"
        '  %2 = "stablehlo.dynamic_gather"(%a, %i, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],'
        " collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> :"
        " (tensor<5x6xf64>, tensor<3xi32>, tensor<2xi32>) -> tensor<3x6xf64>\n"
        "  %3 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<5x6xf64>) -> tensor<i32>\n"
        "  return %0, %1, %2, %3 : tensor<11x6xf64>, tensor<2x5xf64>, tensor<3x6xf64>, tensor<i32>\n}",
        X,
        np.array([4, 0, 2], np.int32),
    )
    expected = np.zeros((11, 6))
    expected[1:10:2] = X
    np.testing.assert_array_equal(padded, expected)
    np.testing.assert_array_equal(part, X[1:4:2, :5])
    np.testing.assert_array_equal(rows, X[[4, 0, 2]])
    assert size == 5


def test_a_batch_of_matrices_is_multiplied_by_one_of_vectors() -> None:
    matrices, vectors = GENERATOR.standard_normal((2, 5, 3, 4)), GENERATOR.standard_normal((2, 3))
    (found,) = run(
        "func.func @main(%a: tensor<2x5x3x4xf64>, %b: tensor<2x3xf64>) -> tensor<2x5x4xf64> {\n"
        "  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        " : (tensor<2x5x3x4xf64>, tensor<2x3xf64>) -> tensor<2x5x4xf64>\n  return %0 : tensor<2x5x4xf64>\n}",
        matrices,
        vectors,
    )
    np.testing.assert_allclose(found, np.einsum("bijk,bj->bik", matrices, vectors), atol=1e-12)


def test_a_generic_that_adds_to_what_is_there_does_so_once() -> None:
    (found,) = run(
        "#all = affine_map<(i, j) -> (i, j)>\n#last = affine_map<(i, j) -> (j)>\n#one = affine_map<(i) -> (i)>\n"
        "func.func @main(%a: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<4x3xf64> {\n"
        '  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}'
        " ins(%a : tensor<3xf64>) outs(%b : tensor<3xf64>) {\n  ^bb0(%x: f64, %y: f64):\n"
        "    %s = arith.addf %x, %y : f64\n    linalg.yield %s : f64\n  } -> tensor<3xf64>\n"
        "  %e = tensor.empty() : tensor<4x3xf64>\n"
        '  %1 = linalg.generic {indexing_maps = [#last, #all], iterator_types = ["parallel", "parallel"]}'
        " ins(%0 : tensor<3xf64>) outs(%e : tensor<4x3xf64>) {\n  ^bb0(%x: f64, %y: f64):\n"
        "    linalg.yield %x : f64\n  } -> tensor<4x3xf64>\n  return %1 : tensor<4x3xf64>\n}",
        X[0, :3],
        X[1, :3],
    )
    np.testing.assert_array_equal(found, np.broadcast_to(X[0, :3] + X[1, :3], (4, 3)))


def test_a_scatter_leaves_out_slices_that_do_not_lie_within() -> None:
    (found,) = run(
        "func.func @main(%a: tensor<4xf64>, %u: tensor<3x2xf64>) -> tensor<4xf64> {\n"
        "  %i = stablehlo.constant dense<[[3], [-1], [2]]> : tensor<3x1xi32>\n"
        '  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
        "  ^bb0(%x: tensor<f64>, %y: tensor<f64>):\n    %s = stablehlo.add %x, %y : tensor<f64>\n"
        "    stablehlo.return %s : tensor<f64>\n"
        "  }) : (tensor<4xf64>, tensor<3x1xi32>, tensor<3x2xf64>) -> tensor<4xf64>\n  return %0 : tensor<4xf64>\n}",
        np.zeros(4),
        np.arange(6.0).reshape(3, 2),
    )
    np.testing.assert_array_equal(found, [0, 0, 4, 5])


def test_numbers_of_several_widths_are_rounded_once() -> None:
    # The first value is just above the midpoint of two numbers of f16; its nearest f32 is the midpoint itself.
    values = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, -1 - 2.0**-11 - 2.0**-40, 1e300, np.nan, 1e-300, -np.inf])
    (found,) = run(
        "func.func @main(%a: tensor<7xf64>) -> tensor<7xf16> {\n"
        "  %0 = stablehlo.convert %a : (tensor<7xf64>) -> tensor<7xf16>\n  return %0 : tensor<7xf16>\n}",
        values,
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, values.astype(np.float16))


jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
F32 = X.astype(np.float32)
IMAGE = GENERATOR.standard_normal((2, 6, 6, 3)).astype(np.float32)
INTEGERS = np.array([7, 250, 3, 3, 128, 0, 255], np.uint8)


def _collatz(x: Any) -> Any:
    def halved(one: Any) -> Any:
        return lax.cond(one % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, one)

    first = (x[0].astype(jnp.int32), 0)
    return lax.while_loop(lambda state: state[0] != 1, lambda state: (halved(state[0]), state[1] + 1), first)


def _chosen(x: Any) -> list[Any]:
    branches = (jnp.sin, jnp.cos, lambda one: one @ one.T @ one)
    return [lax.switch(jnp.int32(number), branches, x) for number in (-3, 0, 1, 2, 7)]


def _pooled(x: Any) -> Any:
    return (lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "while": (_collatz, (INTEGERS,)),
    "case": (_chosen, (F32,)),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.sort(x, 1, descending=True)), (F32,)),
    "sort of unsigned": (lambda x: (jnp.sort(x), jnp.argsort(x, stable=True)), (INTEGERS,)),
    "sort of what is not finite": (jnp.sort, (np.array([np.nan, 1, -np.inf, -0.0, 0.0, np.inf], np.float32),)),
    "top k": (lambda x: lax.top_k(x, 3), (F32,)),
    "top k of equal ones": (lambda x: lax.top_k(x // 1, 5), (F32.reshape(1, -1),)),
    "first of a sort": (lambda x: (jnp.sort(x, 0)[:2], lax.sort((-x, x), dimension=1)[1][:, 1:3]), (F32,)),
    "first of a sort, and more": (lambda x: (jnp.sort(x)[:, :2], jnp.sort(x)[:, 1:]), (F32,)),
    "scatter": (lambda x: (x.at[jnp.array([1, 1, 9])].add(x[:3]), x.at[2, 3].set(0), x.at[:, 1].mul(3)), (F32,)),
    "gather": (lambda x: jax.vmap(lambda row, i: row[i])(x, jnp.array([0, 9, 2, 5, 1])), (F32,)),
    "cumulative": (
        lambda x: [
            f(x, dim, reverse=reverse)
            for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)
            for dim in (0, 1)
            for reverse in (False, True)
        ],
        (F32,),
    ),
    "cumulative in the middle": (lambda x: (lax.cumsum(x, 1), lax.cumsum(x, 2, reverse=True)), (IMAGE,)),
    "windows": (jax.grad(_pooled), (IMAGE,)),
    "FFT": (lambda x: [f(jnp.fft.fft2(x + 1j)) for f in (jnp.real, jnp.imag)], (F32,)),
    "RFFT": (lambda x: [f(jnp.fft.rfftn(x)) for f in (jnp.real, jnp.imag)], (F32,)),
    "IFFT": (lambda x: [f(jnp.fft.ifft(x * 2j + x)) for f in (jnp.real, jnp.imag)], (F32,)),
    "IRFFT": (lambda x: (jnp.fft.irfft(x + x[::-1] * 1j, 10), jnp.fft.irfft(x + 0j, 9)), (F32,)),
    "complex": (lambda x: [f(jnp.exp((x + 1j) * (x - 2j)) / (x + 3j)) for f in (jnp.real, jnp.imag)], (F32,)),
    "random": (lambda x: jax.random.normal(jax.random.key(3), (7,)) + x[0, 0], (F32,)),
    "random bits": (lambda x: jax.random.bits(jax.random.key(3, impl="rbg"), (4, 3)) + x[0], (INTEGERS,)),
    "barrier": (lambda x: lax.optimization_barrier((x + 1, x * 2)), (F32,)),
    "integers of floats": (lambda x: [x.astype(t) for t in (jnp.int8, jnp.uint8, jnp.uint16, jnp.int32)], (F32 * 1e5,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_jax(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    jitted = jax.jit(function)
    found = run(jitted.lower(*arguments).as_text(), *arguments)
    expected = jax.tree.leaves(jitted(*arguments))
    assert len(found) == len(expected)
    for result, wanted in zip(found, map(np.asarray, expected), strict=True):
        comparison = compare(result, wanted, "f32" if wanted.dtype.kind == "f" else str(wanted.dtype))
        assert comparison.is_equal, comparison


def test_reduction_along_no_dimension() -> None:
    (largest,) = run(
        """func.func @main(%a: tensor<5x6xf64>) -> tensor<5x6xf64> {
          %least = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
          %0 = stablehlo.reduce(%a init: %least) applies stablehlo.maximum across dimensions = []
              : (tensor<5x6xf64>, tensor<f64>) -> tensor<5x6xf64>
          return %0 : tensor<5x6xf64>
        }""",
        X,
    )
    np.testing.assert_array_equal(largest, X)


@pytest.mark.parametrize("combine", ["add", "maximum"])
def test_windows_that_do_not_reach_the_end(combine: str) -> None:
    """The window covers three of four rows, so that its loop has one iteration."""
    text = f"""
      func.func @main(%x: tensor<4x3xf32>, %init: tensor<f32>) -> tensor<1x3xf32> {{
        %0 = "stablehlo.reduce_window"(%x, %init)
            <{{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 2, 1>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %1 = stablehlo.{combine} %a, %b : tensor<f32>
            stablehlo.return %1 : tensor<f32>
        }}) : (tensor<4x3xf32>, tensor<f32>) -> tensor<1x3xf32>
        return %0 : tensor<1x3xf32>
      }}"""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (result,) = run(text, x, np.zeros((), np.float32))
    np.testing.assert_array_equal(result, (x[:3].sum(0) if combine == "add" else x[2])[None])
