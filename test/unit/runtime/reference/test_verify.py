# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the criterion by which two arrays count as the same result."""

from __future__ import annotations

import numpy as np
import pytest

import mlir_shard
from mlir_shard.runtime.reference.precise import widen
from mlir_shard.runtime.reference.verify import TOLERANCES, Tolerance, compare, within_rounding


@pytest.mark.parametrize("element_type", ["f64", "f32", "complex<f32>", "complex<f64>"])
def test_rounding_is_within_the_tolerance_and_more_is_not(element_type: str) -> None:
    dtype = {"f64": "f8", "f32": "f4", "complex<f32>": "c8", "complex<f64>": "c16"}[element_type]
    expected = np.array([1, -2, 3], dtype)
    tolerance = TOLERANCES[element_type]
    assert compare(expected * (1 + tolerance / 4), expected, element_type).is_equal
    assert not compare(expected * (1 + 4 * tolerance), expected, element_type).is_equal


def test_both_parts_of_complex_numbers_count() -> None:
    expected = np.array([1 + 1j, 2], np.complex64)
    assert not compare(expected.conj(), expected, "complex<f32>").is_equal
    assert compare(expected, expected, "complex<f32>").is_equal


def test_small_elements_are_measured_by_their_tensor() -> None:
    expected = np.array([1e-9, 1, 1], np.float64)
    assert compare(expected + 1e-13, expected, "f64").is_equal


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_is_equal_to_itself_alone(wrong: float) -> None:
    expected, other = np.array([1.0, wrong]), np.array([1.0, 2.0])
    assert compare(expected, expected, "f64").is_equal
    assert not compare(expected, other, "f64").is_equal
    assert not compare(other, expected, "f64").is_equal


def test_whole_numbers_have_to_be_equal() -> None:
    expected = np.array([1, 2**63 - 1])
    result = compare(expected - 1, expected, "i64")
    assert not result.is_equal
    assert result.absolute == 1


def test_the_element_that_is_off_most_is_named() -> None:
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    actual = expected + np.array([[0, 0.5, 0], [0, 0, 2]], np.float32)
    result = compare(actual, expected, "f32")
    assert result.described("result 1 loss", 6) == (
        "result 1 loss is 7.0 in place of 5.0 at [1, 2], and 2 of 6 elements differ"
    )


def test_a_tolerance_is_that_of_numpy() -> None:
    expected = np.array([100.0, 0.0], np.float32)
    actual = np.array([101.0, 0.25], np.float32)
    assert compare(actual, expected, "f32", "", Tolerance(0.01, 0.3)).is_equal
    assert compare(actual, expected, "f32", "", Tolerance(0.01, 0.2)).count == 1
    assert compare(actual, expected, "f32", "", Tolerance(0.005, 0.2)).count == 2
    assert not compare(np.array([1]), np.array([2]), "i32", "", Tolerance(1, 1)).is_equal


def test_rounding_explains_what_another_order_may_make_of_zero() -> None:
    """The gradients are zero in theory."""
    generator = np.random.default_rng(0)
    one, other = (generator.standard_normal(64) * 1e-6 for _ in range(2))
    precise = np.zeros(64)
    first = compare(one, other, "f32")
    assert not first.is_equal
    assert within_rounding(first, one, other, precise, "f32", scale=1.0).by_rounding
    # A difference is not due to rounding if it is too large, for one element or relative to the computed values.
    one[5] = 1e-4
    result = within_rounding(first, one, other, precise, "f32", scale=1.0)
    assert (result.count, result.worst.index if result.worst else None) == (1, (5,))
    assert not within_rounding(first, other * 2, other, precise, "f32", scale=1e-3).is_equal


def test_a_program_in_f64() -> None:
    module = mlir_shard.parse(
        """
        func.func @main(%a: tensor<2xf32>, %b: tensor<bf16>) -> tensor<2xf32> {
          %c = stablehlo.constant dense<[1.5, 2.5]> : tensor<2xf32>
          %n = arith.constant 0.5 : f32
          %e = tensor.splat %n : tensor<2xf32>
          %0 = stablehlo.convert %b : (tensor<bf16>) -> tensor<f32>
          %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
          %2 = stablehlo.add %1, %c : tensor<2xf32>
          %3 = stablehlo.add %2, %e : tensor<2xf32>
          return %3 : tensor<2xf32>
        }
        """,
        mlir_shard.create_context(),
    )
    assert widen(module)
    text = str(module)
    assert "dense<[1.500000e+00, 2.500000e+00]> : tensor<2xf64>" in text
    assert "f32" not in text
    assert "f16" not in text
