# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of 8-bit floats on MPI, which LLVM lacks: conversions, against ml_dtypes, and programs from JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P
from mlir_shard.runtime.arrays import numpy_dtype
from mlir_shard.runtime.lowering import float8

MESH = ms.Mesh({"x": 2})


def run(text: str, *inputs: Any) -> list[Any]:
    return [np.asarray(one) for one in ms.execute(ms.parse(text), list(inputs), 1)]


def same(got: Any, wanted: Any) -> None:
    """Asserts that bits are equal, except that any NaN equals any other."""
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), is_nan)
    bits = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~is_nan], wanted.view(bits)[~is_nan])


@pytest.mark.parametrize("name", float8.TYPES)
def test_every_code_becomes_the_float_that_it_is(name: str) -> None:
    codes = np.arange(256, dtype=np.uint8).view(numpy_dtype(name))
    text = f"""
    func.func @main(%a: tensor<256x{name}>) -> (tensor<256xf32>, tensor<256xf64>, tensor<256xbf16>) {{
      %0 = arith.extf %a : tensor<256x{name}> to tensor<256xf32>
      %1 = arith.extf %a : tensor<256x{name}> to tensor<256xf64>
      %2 = arith.extf %a : tensor<256x{name}> to tensor<256xbf16>
      return %0, %1, %2 : tensor<256xf32>, tensor<256xf64>, tensor<256xbf16>
    }}"""
    for got, dtype in zip(run(text, codes), (np.float32, np.float64, ml_dtypes.bfloat16), strict=True):
        same(got, codes.astype(dtype))


@pytest.mark.parametrize("name", float8.TYPES)
def test_floats_are_rounded_to_the_nearest(name: str) -> None:
    dtype = numpy_dtype(name)
    exact = np.arange(128, dtype=np.uint8).view(dtype).astype(np.float32)
    exact = np.unique(exact[np.isfinite(exact)])
    # Midpoints of numbers and their neighbors, numbers beyond the largest one, and numbers below the smallest one.
    middle = (exact[1:] + exact[:-1]) / 2
    beyond = exact[-1] + (exact[-1] - exact[-2]) * np.array([0.25, 0.5, 0.75, 1, 100], np.float32)
    near = [np.nextafter(middle, np.float32(bound)) for bound in (0, np.inf)]
    special = np.array([0, np.inf, np.nan, 1e-45, 3e38, exact[1] / 4], np.float32)
    values = np.concatenate([exact, middle, *near, beyond, special])
    values = np.concatenate([values, -values])
    text = f"""
    func.func @main(%a: tensor<{len(values)}xf32>) -> tensor<{len(values)}x{name}> {{
      %0 = arith.truncf %a : tensor<{len(values)}xf32> to tensor<{len(values)}x{name}>
      return %0 : tensor<{len(values)}x{name}>
    }}"""
    same(run(text, values)[0], values.astype(dtype))


def scaled_matmul(x: Any, w: Any, scale: Any) -> Any:
    """Returns a product of quantized tensors, quantized again, the maximum of each column, and a sum."""
    product = (x.astype(jnp.float32) @ w.astype(jnp.float32)) * scale
    return product.astype(x.dtype), jnp.max(x.astype(jnp.bfloat16), axis=0), x + x


@pytest.mark.parametrize("engine", ["mpi", "pjrt"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"])
def test_quantized_programs(dtype: str, engine: str) -> None:
    draw = np.random.default_rng(0)
    of_type = np.dtype(getattr(ml_dtypes, dtype))
    x, w = (draw.integers(0, 4, shape).astype(of_type) for shape in ((4, 8), (8, 6)))
    arguments = x, w, np.float32(0.125)
    program = ms.from_jax(scaled_matmul, *arguments, mesh=MESH, in_shardings=(P(None, "x"), P("x"), P()))
    with program.compile(engine) as compiled:
        results = [np.asarray(one) for one in compiled(*arguments)]
    for got, wanted in zip(results, jax.jit(scaled_matmul)(*arguments), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got.astype(np.float32), np.asarray(wanted).astype(np.float32))
