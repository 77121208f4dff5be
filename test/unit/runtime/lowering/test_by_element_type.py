# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares operations of StableHLO with NumPy for element types for which the host lowers them incorrectly."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from runtime.in_process import run
from runtime.local_program import needs_mpich

import mlir_shard as ms
from mlir_shard.runtime.arrays import FLOAT8, numpy_dtype

GENERATOR = np.random.default_rng(0)
LEFT = GENERATOR.integers(0, 256, (5, 33)).astype(np.uint8)
RIGHT = GENERATOR.integers(0, 256, (33, 7)).astype(np.uint8)
BOOLEANS = GENERATOR.integers(0, 2, (6, 8)).astype(bool)
SUM = """({
  ^bb0(%l: tensor<i1>, %r: tensor<i1>):
    %s = stablehlo.add %l, %r : tensor<i1>
    stablehlo.return %s : tensor<i1>
  })"""


@pytest.mark.parametrize("name", ["ui32", "i32", "f32", "ui64"])
def test_unsigned_factors_are_widened_without_sign(name: str) -> None:
    (product,) = run(
        f"func.func @main(%a: tensor<5x33xui8>, %b: tensor<33x7xui8>) -> tensor<5x7x{name}> {{\n"
        f"  %0 = stablehlo.dot %a, %b : (tensor<5x33xui8>, tensor<33x7xui8>) -> tensor<5x7x{name}>\n"
        f"  return %0 : tensor<5x7x{name}>\n}}",
        LEFT,
        RIGHT,
    )
    np.testing.assert_array_equal(product, LEFT.astype(int) @ RIGHT.astype(int))


def test_only_the_unsigned_factor_is_widened_without_sign() -> None:
    signed = LEFT.view(np.int8)
    (product,) = run(
        "func.func @main(%a: tensor<5x33xi8>, %b: tensor<33x7xui8>) -> tensor<5x7xi32> {\n"
        "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] :"
        " (tensor<5x33xi8>, tensor<33x7xui8>) -> tensor<5x7xi32>\n  return %0 : tensor<5x7xi32>\n}",
        signed,
        RIGHT,
    )
    np.testing.assert_array_equal(product, signed.astype(int) @ RIGHT.astype(int))


def test_unsigned_images_are_widened_without_sign() -> None:
    image, kernel = LEFT[:1, :, None], RIGHT[:3, None, :]
    (found,) = run(
        "func.func @main(%a: tensor<1x33x1xui8>, %b: tensor<3x1x7xui8>) -> tensor<1x31x7xi32> {\n"
        "  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}"
        " {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :"
        " (tensor<1x33x1xui8>, tensor<3x1x7xui8>) -> tensor<1x31x7xi32>\n  return %0 : tensor<1x31x7xi32>\n}",
        image,
        kernel,
    )
    windows = np.lib.stride_tricks.sliding_window_view(image[0, :, 0].astype(int), 3)
    np.testing.assert_array_equal(found[0], windows @ kernel[:, 0].astype(int))


def test_a_sum_of_booleans_is_their_disjunction() -> None:
    both, rows, ahead = run(
        "func.func @main(%a: tensor<6x8xi1>) -> (tensor<6x8xi1>, tensor<6xi1>, tensor<6x8xi1>) {\n"
        "  %no = stablehlo.constant dense<false> : tensor<i1>\n  %0 = stablehlo.add %a, %a : tensor<6x8xi1>\n"
        f'  %1 = "stablehlo.reduce"(%a, %no) <{{dimensions = array<i64: 1>}}> {SUM} :'
        " (tensor<6x8xi1>, tensor<i1>) -> tensor<6xi1>\n"
        '  %2 = "stablehlo.reduce_window"(%a, %no) <{window_dimensions = array<i64: 6, 1>,'
        f" padding = dense<[[5, 0], [0, 0]]> : tensor<2x2xi64>}}> {SUM} :"
        " (tensor<6x8xi1>, tensor<i1>) -> tensor<6x8xi1>\n"
        "  return %0, %1, %2 : tensor<6x8xi1>, tensor<6xi1>, tensor<6x8xi1>\n}",
        BOOLEANS,
    )
    np.testing.assert_array_equal(both, BOOLEANS)
    np.testing.assert_array_equal(rows, BOOLEANS.any(1))
    np.testing.assert_array_equal(ahead, np.logical_or.accumulate(BOOLEANS, 0))


@needs_mpich
def test_a_sum_of_booleans_over_ranks_is_their_disjunction() -> None:
    text = f"""
    sdy.mesh @m = <["x"=2]>
    func.func @main(%a: tensor<6x8xi1> {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{"x"}}]>}}) -> tensor<6xi1> {{
      %no = stablehlo.constant dense<false> : tensor<i1>
      %0 = "stablehlo.reduce"(%a, %no) <{{dimensions = array<i64: 1>}}> {SUM} :
        (tensor<6x8xi1>, tensor<i1>) -> tensor<6xi1>
      return %0 : tensor<6xi1>
    }}"""
    (found,) = ms.execute(ms.parse(text), [BOOLEANS])
    np.testing.assert_array_equal(found, BOOLEANS.any(1))


@pytest.mark.parametrize("name", FLOAT8)
def test_floats_of_eight_bits_are_finite_and_have_a_logistic_function(name: str) -> None:
    values = np.arange(256, dtype=np.uint8).view(numpy_dtype(name))
    is_finite, logistic = run(
        f"func.func @main(%a: tensor<256x{name}>) -> (tensor<256xi1>, tensor<256x{name}>) {{\n"
        f"  %0 = stablehlo.is_finite %a : (tensor<256x{name}>) -> tensor<256xi1>\n"
        f"  %1 = stablehlo.logistic %a : tensor<256x{name}>\n"
        f"  return %0, %1 : tensor<256xi1>, tensor<256x{name}>\n}}",
        values,
    )
    np.testing.assert_array_equal(is_finite, np.isfinite(values))
    with np.errstate(over="ignore"):
        wanted = (1 / (1 + np.exp(-values.astype(np.float32)))).astype(values.dtype)
    difference = np.abs(logistic.astype(np.float32) - wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(logistic), np.isnan(wanted))
    assert np.nanmax(difference) <= ml_dtypes.finfo(values.dtype).eps
