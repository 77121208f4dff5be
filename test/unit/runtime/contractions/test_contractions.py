# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of contractions and convolutions by OpenBLAS, in any layout and type, against NumPy and JAX."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest
from runtime.contractions.contraction_programs import BITS, DTYPES, EQUATIONS, check, contract
from runtime.in_process import lower, run

from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch.libraries import blas, narrow_gemm


@pytest.fixture
def by_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the functions of the native core for contractions, as on a CPU without the instructions."""
    monkeypatch.setattr(narrow_gemm, "functions", dict)


@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("type_", ["f32", "complex<f64>"])
def test_layouts(equation: str, type_: str) -> None:
    text = contract(equation, type_, type_)
    assert "cblas_" in lower([text], "main")[0]
    check(text, equation, type_, type_)


@pytest.mark.usefixtures("by_blas")
@pytest.mark.parametrize(
    ("input_type", "type_"),
    [*((one, one) for one in DTYPES), ("bf16", "f32"), ("f16", "f32"), ("f32", "f64"), ("bf16", "f64")],
)
@pytest.mark.parametrize("equation", ["mk,kn->mn", "bmhk,bnhk->bhmn"])
def test_types(equation: str, input_type: str, type_: str) -> None:
    text = contract(equation, input_type, type_)
    assert "cblas_" in lower([text], "main")[0]
    check(text, equation, input_type, type_)


def test_accumulation_of_narrow_floats_is_in_f32() -> None:
    ones = np.ones((1, 1024), ml_dtypes.bfloat16)
    text = """
      func.func @main(%a: tensor<1x1024xbf16>, %b: tensor<1024x1xbf16>) -> tensor<1x1xbf16> {
        %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<1x1024xbf16>, tensor<1024x1xbf16>) -> tensor<1x1xbf16>
        return %0 : tensor<1x1xbf16>
      }"""
    # A bf16 cannot count beyond 256.
    assert run(text, ones, ones.T.copy())[0] == 1024


@pytest.mark.parametrize("step", [1, 2])
def test_slices(step: int) -> None:
    """Slices with step 1 are read in place; others are copied."""
    text = f"""
      func.func @main(%a: tensor<20x96xf32>, %b: tensor<32x24xf32>) -> tensor<10x24xf32> {{
        %cut = tensor.extract_slice %a[4, 16] [10, 32] [1, {step}] : tensor<20x96xf32> to tensor<10x32xf32>
        %zero = arith.constant dense<0.0> : tensor<10x24xf32>
        %0 = linalg.matmul ins(%cut, %b : tensor<10x32xf32>, tensor<32x24xf32>)
          outs(%zero : tensor<10x24xf32>) -> tensor<10x24xf32>
        return %0 : tensor<10x24xf32>
      }}"""
    assert "cblas_sgemm" in lower([text], "main")[0]
    a, b = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((20, 96), (32, 24)))
    np.testing.assert_allclose(run(text, a, b)[0], a[4:14, 16 : 16 + 32 * step : step] @ b, rtol=1e-4, atol=1e-4)


def test_what_makes_an_input_is_not_computed_for_each_product() -> None:
    text = """
      func.func @main(%a: tensor<16x32xf32>, %b: tensor<32x24xf32>) -> tensor<16x24xf32> {
        %0 = stablehlo.tanh %a : tensor<16x32xf32>
        %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]
          : (tensor<16x32xf32>, tensor<32x24xf32>) -> tensor<16x24xf32>
        return %1 : tensor<16x24xf32>
      }"""
    assert "cblas_sgemm" in lower([text], "main")[0]
    a, b = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((16, 32), (32, 24)))
    np.testing.assert_allclose(run(text, a, b)[0], np.tanh(a) @ b, rtol=1e-4, atol=1e-4)


def test_what_makes_the_input_of_a_convolution_is_computed_once() -> None:
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(one).astype(np.float32) for one in ((2, 16, 12, 40), (24, 16, 1, 1)))

    @jax.jit
    def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.nn.relu(jax.lax.conv(jax.numpy.tanh(x), w, (1, 1), "VALID"))

    text = str(convolve.lower(x, w).compiler_ir("stablehlo"))
    lowered = lower([text], "main")[0]
    assert "cblas_sgemm" in lowered
    assert "outside of fusion" not in lowered
    np.testing.assert_allclose(run(text, x, w)[0], convolve(x, w), rtol=1e-4, atol=1e-4)


GENERIC = """
  func.func @main(%a: tensor<16x32x{from}>, %b: tensor<32x24x{from}>, %c: tensor<16x24x{to}>) -> tensor<16x24x{to}> {{
    %0 = linalg.generic {{
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]
    }} ins(%a, %b : tensor<16x32x{from}>, tensor<32x24x{from}>) outs(%c : tensor<16x24x{to}>) {{
    ^bb0(%x: {from}, %y: {from}, %z: {to}):
      {body}
    }} -> tensor<16x24x{to}>
    return %0 : tensor<16x24x{to}>
  }}"""


@pytest.mark.parametrize(
    "body",
    [
        "%p = arith.mulf %x, %x : f32\n%s = arith.addf %z, %p : f32\nlinalg.yield %s : f32",
        "%p = arith.mulf %x, %y : f32\n%s = arith.addf %p, %p : f32\nlinalg.yield %s : f32",
        "%p = arith.mulf %x, %y : f32\n%s = arith.maximumf %z, %p : f32\nlinalg.yield %s : f32",
        "%p = arith.mulf %x, %y : f32\n%s = arith.addf %z, %p : f32\nlinalg.yield %p : f32",
        "%t = math.tanh %x : f32\n%p = arith.mulf %t, %y : f32\n%s = arith.addf %z, %p : f32\nlinalg.yield %s : f32",
    ],
)
def test_other_bodies_stay_loops(body: str) -> None:
    text = GENERIC.format(**{"from": "f32", "to": "f32", "body": body})
    assert "cblas_" not in lower([text], "main")[0]


@pytest.mark.usefixtures("by_blas")
def test_widened_integers_are_exact() -> None:
    body = (
        "%v = arith.extsi %x : i8 to i32\n%w = arith.extsi %y : i8 to i32\n"
        "%p = arith.muli %v, %w : i32\n%s = arith.addi %p, %z : i32\nlinalg.yield %s : i32"
    )
    text = GENERIC.format(**{"from": "i8", "to": "i32", "body": body})
    assert "cblas_sgemm" in lower([text], "main")[0]
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-128, 128, shape).astype(np.int8) for shape in ((16, 32), (32, 24)))
    c = draw.integers(-9, 9, (16, 24)).astype(np.int32)
    np.testing.assert_array_equal(run(text, a, b, c)[0], a.astype(np.int32) @ b + c)


def test_large_sums_of_integers_are_exact() -> None:
    text = """
      func.func @main(%a: tensor<2x4096xi8>, %b: tensor<4096x3xi16>) -> tensor<2x3xi32> {
        %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<2x4096xi8>, tensor<4096x3xi16>) -> tensor<2x3xi32>
        return %0 : tensor<2x3xi32>
      }"""
    assert "cblas_dgemm" in lower([text], "main")[0]
    a, b = np.full((2, 4096), -128, np.int8), np.full((4096, 3), -32768, np.int16)
    b[7] = 1
    # The sum wraps around.
    wanted = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(run(text, a, b)[0], wanted)


def test_integers_that_are_not_widened_stay_loops() -> None:
    body = "%p = arith.muli %x, %y : i32\n%s = arith.addi %p, %z : i32\nlinalg.yield %s : i32"
    text = GENERIC.format(**{"from": "i32", "to": "i32", "body": body})
    assert "cblas_" not in lower([text], "main")[0]
    a, b, c = (np.full(shape, 2**30, np.int32) for shape in ((16, 32), (32, 24), (16, 24)))
    np.testing.assert_array_equal(run(text, a, b, c)[0], c)


@pytest.mark.parametrize("between", ["", "%r = tensor.extract %zero[%i, %i] : tensor<16x24xf32>"])
def test_a_result_that_begins_as_zero(between: str) -> None:
    text = f"""
      func.func @main(%a: tensor<16x32xf32>, %b: tensor<32x24xf32>, %x: tensor<f32>) -> tensor<16x24xf32> {{
        %i = arith.constant 0 : index
        %f = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<16x24xf32>
        %zero = linalg.fill ins(%f : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
        {between}
        %0 = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x24xf32>)
          outs(%zero : tensor<16x24xf32>) -> tensor<16x24xf32>
        %1 = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x24xf32>)
          outs(%0 : tensor<16x24xf32>) -> tensor<16x24xf32>
        return %1 : tensor<16x24xf32>
      }}"""
    a, b = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((16, 32), (32, 24)))
    np.testing.assert_allclose(run(text, a, b, np.float32(0))[0], 2 * a @ b, rtol=1e-4, atol=1e-4)


def test_a_vector_that_begins_as_zero() -> None:
    text = """
      func.func @main(%a: tensor<16x64xf32>, %x: tensor<64xf32>) -> tensor<16xf32> {
        %0 = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
          : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<16xf32>
        return %0 : tensor<16xf32>
      }"""
    assert "cblas_sgemv" in lower([text], "main")[0]
    a, x = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((16, 64), 64))
    np.testing.assert_allclose(run(text, a, x)[0], a @ x, rtol=1e-4, atol=1e-4)


def test_a_result_that_begins_as_something_else() -> None:
    text = """
      func.func @main(%a: tensor<16x32xf32>, %b: tensor<32x24xf32>) -> tensor<16x24xf32> {
        %f = arith.constant 1.5 : f32
        %e = tensor.empty() : tensor<16x24xf32>
        %initial = linalg.fill ins(%f : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
        %0 = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x24xf32>)
          outs(%initial : tensor<16x24xf32>) -> tensor<16x24xf32>
        return %0 : tensor<16x24xf32>
      }"""
    a, b = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((16, 32), (32, 24)))
    np.testing.assert_allclose(run(text, a, b)[0], a @ b + 1.5, rtol=1e-4, atol=1e-4)


def test_products_without_a_sum_stay_loops() -> None:
    text = """
      func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
        %0 = linalg.generic {
          indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n, m)>, affine_map<(m, n) -> (m, n)>],
          iterator_types = ["parallel", "parallel"]
        } ins(%a, %b : tensor<32x32xf32>, tensor<32x32xf32>) outs(%c : tensor<32x32xf32>) {
        ^bb0(%x: f32, %y: f32, %z: f32):
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %z, %p : f32
          linalg.yield %s : f32
        } -> tensor<32x32xf32>
        return %0 : tensor<32x32xf32>
      }"""
    assert "cblas_" not in lower([text], "main")[0]
    a, b, c = np.random.default_rng(0).standard_normal((3, 32, 32)).astype(np.float32)
    np.testing.assert_allclose(run(text, a, b, c)[0], a * b.T + c, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("step", [1, 2])
def test_vectors_with_steps(side: int, is_transposed: bool, step: int) -> None:
    matrix, vector = ("kn" if is_transposed else "nk"), "k"
    rows = f"affine_map<(n, k) -> ({', '.join(matrix)})>"
    maps = [rows, "affine_map<(n, k) -> (k)>"][:: 1 - 2 * side]
    shape = tuple({"n": 24, "k": 40}[one] for one in matrix)
    types = [f"tensor<{shape[0]}x{shape[1]}xf32>", "tensor<40xf32>"][:: 1 - 2 * side]
    names = ["%a", "%x"][:: 1 - 2 * side]
    text = f"""
      func.func @main(%a: tensor<{shape[0]}x{shape[1]}xf32>, %v: tensor<{40 * step}xf32>, %c: tensor<24xf32>)
          -> tensor<24xf32> {{
        %x = tensor.extract_slice %v[0] [40] [{step}] : tensor<{40 * step}xf32> to tensor<40xf32>
        %0 = linalg.contract indexing_maps = [{", ".join(maps)}, affine_map<(n, k) -> (n)>]
          ins({", ".join(names)} : {", ".join(types)}) outs(%c : tensor<24xf32>) -> tensor<24xf32>
        return %0 : tensor<24xf32>
      }}"""
    assert "cblas_sgemv" in lower([text], "main")[0]
    draw = np.random.default_rng(0)
    a, v, c = (draw.standard_normal(shape).astype(np.float32) for shape in (shape, 40 * step, 24))
    wanted = np.einsum(f"{matrix},{vector}->n", a, v[::step]) + c
    np.testing.assert_allclose(run(text, a, v, c)[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("by_blas")
@pytest.mark.parametrize("element_type", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("layout", "stride", "dilation"), [("NHWC", 1, 1), ("NHWC", 2, 1), ("NCHW", 1, 1), ("NCHW", 2, 2), ("CNHW", 1, 2)]
)
def test_convolutions(layout: str, stride: int, dilation: int, element_type: str) -> None:
    kernel = {"NHWC": "HWIO", "NCHW": "OIHW", "CNHW": "IHWO"}[layout]
    size_of = {"N": 2, "H": 12, "W": 40, "C": 16}
    shape = tuple(size_of[one] for one in layout)
    kernel_shape = tuple({"H": 3, "W": 3, "I": 16, "O": 24}[one] for one in kernel)
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(one).astype(DTYPES[element_type]) for one in (shape, kernel_shape))

    def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
        numbers = (layout, kernel, layout)
        padding = [(1, 1), (0, 2)]
        return jax.lax.conv_general_dilated(x, w, (stride,) * 2, padding, (1, 1), (dilation,) * 2, numbers)

    text = str(jax.jit(convolve).lower(x, w).compiler_ir("stablehlo"))
    assert "cblas_" in lower([text], "main")[0]
    wanted = np.asarray(convolve(x.astype(np.float32), w.astype(np.float32)))
    got = run(text, x, w)[0].astype(np.float32)
    np.testing.assert_allclose(got, wanted, rtol=BITS[element_type], atol=BITS[element_type] * np.abs(wanted).max())


def test_the_gradient_of_a_kernel() -> None:
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(one).astype(np.float32) for one in ((2, 12, 40, 16), (3, 3, 16, 24)))

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        convolved = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return (convolved**2).sum()

    gradient = jax.jit(jax.grad(loss))
    text = str(gradient.lower(w, x).compiler_ir("stablehlo"))
    wanted = np.asarray(gradient(w, x))
    np.testing.assert_allclose(run(text, w, x)[0], wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_small_contractions_stay_loops() -> None:
    assert "cblas_" not in lower([contract("mk,k->m", "f32", "f32").replace("40", "3")], "main")[0]


def test_without_the_library_all_are_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "library_path", lambda: None)
    text = contract("bmhk,bnhk->bhmn", "f32", "f32")
    assert "cblas_" not in lower([text], "main")[0]
    check(text, "bmhk,bnhk->bhmn", "f32", "f32")


def test_programs_for_another_cpu_are_loops() -> None:
    text = contract("mk,kn->mn", "f32", "f32")
    assert "cblas_" not in lower([text], "main", "x86-64-v2")[0]


def test_a_rank_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "library_path", lambda: None)
    assert blas.addresses("llvm.func @malloc(i64)") == {}
    with pytest.raises(RunError, match=r"calls OpenBLAS, which is not installed here: pip install 'mlir-shard\[run\]'"):
        blas.addresses("llvm.func @cblas_sgemm(i32)")
