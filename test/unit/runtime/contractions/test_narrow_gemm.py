# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares contractions of bf16 and i8 by functions of the native core, on CPUs with their instructions, with NumPy."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import dataclass

import jax
import ml_dtypes
import numpy as np
import pytest
from runtime.contractions.contraction_programs import BITS, DTYPES, EQUATIONS, check, contract
from runtime.in_process import lower, run

from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch import python_process
from mlir_shard.runtime.launch.libraries import narrow_gemm

FEATURES = {"bf16": "AVX512-BF16", "i8": "AVX512-VNNI"}
RESULTS = {"bf16": np.dtype(np.float32), "i8": np.dtype(np.int32)}
needs = {
    element_type: pytest.mark.skipif(
        f"narrow_gemm_{element_type}" not in narrow_gemm.functions(), reason=f"this CPU has no {feature}"
    )
    for element_type, feature in FEATURES.items()
}
each_type = pytest.mark.parametrize("element_type", [pytest.param(one, marks=needs[one]) for one in FEATURES])


@dataclass(frozen=True)
class Operand:
    """A matrix in larger memory, by rows or by columns."""

    memory: np.ndarray
    columns: int
    is_transposed: bool = False

    @property
    def matrix(self) -> np.ndarray:
        view = self.memory[:, : self.columns]
        return view.T if self.is_transposed else view


def drawn(rows: int, columns: int, element_type: str, is_transposed: bool, gap: int, seed: int) -> Operand:
    shape = (columns, rows) if is_transposed else (rows, columns)
    draw = np.random.default_rng(seed)
    # The memory between the rows must not affect the result.
    if element_type == "i8":
        memory = draw.integers(-128, 127, (shape[0], shape[1] + gap), np.int8, endpoint=True)
    else:
        memory = np.full((shape[0], shape[1] + gap), np.nan, ml_dtypes.bfloat16)
        memory[:, : shape[1]] = draw.standard_normal(shape)
    return Operand(memory, shape[1], is_transposed)


def multiply(a: Operand, b: Operand, c: np.ndarray, columns: int, element_type: str, adds: bool, threads: int) -> None:
    """Calls the function of the native core; `c` may have more columns."""
    i32, pointer = ctypes.c_int32, ctypes.c_void_p
    types = [*[i32] * 5, pointer, i32, pointer, i32, i32, pointer, i32, i32]
    function = ctypes.CFUNCTYPE(None, *types)(narrow_gemm.functions()[f"narrow_gemm_{element_type}"])
    (rows, depth), (_, of_b) = a.matrix.shape, b.matrix.shape
    assert of_b == columns
    operands = [value for one in (a, b) for value in (one.memory.ctypes.data, one.memory.shape[1])]
    sizes = int(a.is_transposed), int(b.is_transposed), rows, columns, depth
    function(*sizes, *operands, int(adds), c.ctypes.data, c.shape[1], threads)


def check_product(
    sizes: tuple[int, int, int],
    element_type: str,
    forms: tuple[bool, bool] = (False, False),
    gap: int = 3,
    adds: bool = False,
    threads: int = 1,
) -> None:
    m, k, n = sizes
    a, b = drawn(m, k, element_type, forms[0], gap, 0), drawn(k, n, element_type, forms[1], gap, 1)
    before = np.random.default_rng(2).integers(-99, 99, (m, n + gap)).astype(RESULTS[element_type])
    c = before.copy()
    multiply(a, b, c, n, element_type, adds, threads)
    exact = np.int64 if element_type == "i8" else np.float64
    factors = [one.matrix.astype(exact) for one in (a, b)]
    wanted = factors[0] @ factors[1] + adds * before[:, :n].astype(exact)
    np.testing.assert_array_equal(c[:, n:], before[:, n:])
    if element_type == "i8":
        np.testing.assert_array_equal(c[:, :n], wanted)
    else:
        most = np.abs(factors[0]) @ np.abs(factors[1]) + np.abs(before[:, :n])
        assert (np.abs(c[:, :n] - wanted) <= 1e-6 * most * np.sqrt(k)).all()


@each_type
@pytest.mark.parametrize("forms", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    # Fewer rows and columns than a tile has, as many, and a few more; sums of some elements of a lane.
    "sizes",
    [
        (1, 1, 1),
        (1, 64, 32),
        (12, 2, 16),
        (13, 3, 17),
        (5, 31, 33),
        (25, 66, 31),
        (11, 4, 1),
        (2, 7, 65),
        (36, 130, 64),
    ],
)
def test_tiles(sizes: tuple[int, int, int], forms: tuple[bool, bool], element_type: str) -> None:
    for adds in (False, True):
        check_product(sizes, element_type, forms, adds=adds)


@each_type
@pytest.mark.parametrize("forms", [(False, False), (True, True)])
@pytest.mark.parametrize("sizes", [(400, 9, 40), (7, 2 * 1024 + 5, 40), (390, 1030, 33)])
def test_several_blocks(sizes: tuple[int, int, int], forms: tuple[bool, bool], element_type: str) -> None:
    for adds in (False, True):
        check_product(sizes, element_type, forms, adds=adds)


@each_type
@pytest.mark.parametrize("forms", [(False, False), (True, True)])
@pytest.mark.parametrize("gap", [0, 2])
def test_columns(gap: int, forms: tuple[bool, bool], element_type: str) -> None:
    check_product((71, 45, 1), element_type, forms, gap)


@each_type
@pytest.mark.parametrize("sizes", [(331, 260, 128), (128, 260, 331), (12, 20_000, 64)])
@pytest.mark.parametrize("threads", [2, 3, 64])
def test_threads(threads: int, sizes: tuple[int, int, int], element_type: str) -> None:
    check_product(sizes, element_type, threads=threads)


@needs["bf16"]
def test_numbers_that_are_not_normal() -> None:
    def product(x: float, y: float) -> np.float32:
        a, b = (Operand(np.full((1, 1), one, ml_dtypes.bfloat16), 1) for one in (x, y))
        c = np.ones((1, 1), np.float32)
        multiply(a, b, c, 1, "bf16", adds=False, threads=1)
        return c[0, 0]

    assert product(np.inf, -2) == -np.inf
    assert np.isnan(product(np.inf, 0)) and np.isnan(product(np.nan, 0))
    assert product(2.0**-127, 2.0**127) == 0
    assert product(2.0**-126, 2.0**126) == 1


@needs["i8"]
def test_sums_of_the_largest_products() -> None:
    a, b = (Operand(np.full(shape, -128, np.int8), shape[1]) for shape in ((2, 8192), (8192, 33)))
    c = np.full((2, 33), 2**31 - 1, np.int32)
    multiply(a, b, c, 33, "i8", adds=True, threads=1)
    # The sum wraps around.
    np.testing.assert_array_equal(c, 8192 * 128 * 128 + 2**31 - 1 - 2**32)


@each_type
@pytest.mark.parametrize("equation", EQUATIONS)
def test_layouts(equation: str, element_type: str) -> None:
    type_ = {"bf16": "f32", "i8": "i32"}[element_type]
    text = contract(equation, element_type, type_)
    lowered = lower([text], "main")[0]
    assert f"narrow_gemm_{element_type}" in lowered and "cblas_" not in lowered
    check(text, equation, element_type, type_)


@pytest.mark.parametrize(
    ("input_type", "type_"),
    [
        pytest.param(*types, marks=needs[types[0]])
        for types in (("bf16", "bf16"), ("i8", "i8"), ("i8", "i16"), ("i8", "i64"))
    ],
)
@pytest.mark.parametrize("equation", ["mk,kn->mn", "mkl,klnb->mbn", "bmhk,bnhk->bhmn"])
def test_results_of_other_types(equation: str, input_type: str, type_: str) -> None:
    text = contract(equation, input_type, type_)
    assert f"narrow_gemm_{input_type}" in lower([text], "main")[0]
    check(text, equation, input_type, type_)


@needs["bf16"]
@pytest.mark.parametrize("type_", ["f64"])
def test_results_of_more_bits_are_of_blas(type_: str) -> None:
    text = contract("mk,kn->mn", "bf16", type_)
    lowered = lower([text], "main")[0]
    assert "cblas_dgemm" in lowered and "narrow_gemm" not in lowered
    check(text, "mk,kn->mn", "bf16", type_)


@needs["bf16"]
@pytest.mark.parametrize(("layout", "stride"), [("NHWC", 1), ("NHWC", 2), ("NCHW", 1), ("CNHW", 1)])
def test_convolutions(layout: str, stride: int) -> None:
    kernel = {"NHWC": "HWIO", "NCHW": "OIHW", "CNHW": "IHWO"}[layout]
    size_of = {"N": 2, "H": 12, "W": 40, "C": 16}
    shape = tuple(size_of[one] for one in layout)
    kernel_shape = tuple({"H": 3, "W": 3, "I": 16, "O": 24}[one] for one in kernel)
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(one).astype(DTYPES["bf16"]) for one in (shape, kernel_shape))

    def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(x, w, (stride,) * 2, "SAME", dimension_numbers=(layout, kernel, layout))

    text = str(jax.jit(convolve).lower(x, w).compiler_ir("stablehlo"))
    assert "narrow_gemm_bf16" in lower([text], "main")[0]
    wanted = np.asarray(convolve(x.astype(np.float32), w.astype(np.float32)))
    got = run(text, x, w)[0].astype(np.float32)
    np.testing.assert_allclose(got, wanted, rtol=BITS["bf16"], atol=BITS["bf16"] * np.abs(wanted).max())


@each_type
def test_programs_for_another_cpu_are_loops(element_type: str) -> None:
    type_ = {"bf16": "f32", "i8": "i32"}[element_type]
    text = contract("mk,kn->mn", element_type, type_)
    assert "narrow_gemm" not in lower([text], "main", "x86-64-v2")[0]


def test_a_cpu_without_the_instructions_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_gemm, "functions", dict)
    assert narrow_gemm.addresses("llvm.func @cblas_sgemm(i32)") == {}
    with pytest.raises(RunError, match="multiplies matrices of bf16 with instructions that this CPU does not support"):
        narrow_gemm.addresses("llvm.func @narrow_gemm_bf16(i32)")


def test_ranks_have_as_many_threads_as_they_are_given() -> None:
    name = "openblas_get_num_threads"
    program = f"""if True:
        import ctypes
        from mlir_shard.runtime.launch.libraries import blas
        found = blas.addresses("llvm.func @{name}() -> i32")["{name}"]
        print(ctypes.CFUNCTYPE(ctypes.c_int)(found)())
    """
    for threads in (1, 3):
        environment = python_process.python_environment(threads=threads)
        ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert (ended.stdout, ended.stderr) == (f"{threads}\n", "")
