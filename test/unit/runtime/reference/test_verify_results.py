# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the criterion by which arrays of each type count as the same result."""

from __future__ import annotations

import numpy as np
import pytest

from mlir_shard.runtime.reference.verify import TOLERANCES, compare


@pytest.mark.parametrize(("element_type", "dtype"), [("f64", np.float64), ("f32", np.float32), ("f16", np.float16)])
def test_rounding_is_no_difference_and_ten_times_the_tolerance_is(element_type: str, dtype: type) -> None:
    expected = np.array([1.0, 100.0, -3.0], dtype)
    tolerance = TOLERANCES[element_type]
    near = (expected.astype(np.float64) * (1 + 0.4 * tolerance)).astype(dtype)
    far = (expected.astype(np.float64) * (1 + 10 * tolerance)).astype(dtype)
    assert compare(near, expected, element_type).is_equal
    assert not compare(far, expected, element_type).is_equal


def test_an_element_near_zero_is_measured_by_the_others() -> None:
    """A sum of large numbers that is near zero has the rounding error of the large numbers."""
    expected = np.array([1e-9, 5.0, -5.0], np.float32)
    assert compare(np.array([-1e-6, 5.0, -5.0], np.float32), expected, "f32").is_equal
    assert not compare(np.array([1e-3, 5.0, -5.0], np.float32), expected, "f32").is_equal


def test_the_errors_are_the_greatest() -> None:
    comparison = compare(np.array([1.0, 2.5, 4.0]), np.array([1.0, 2.0, 4.0]), "f64")
    assert comparison.absolute == 0.5
    assert comparison.relative == pytest.approx(0.5 / (7 / 3))
    assert not comparison.is_equal


def test_what_is_not_finite_equals_itself_only() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare(values, values, "f64").is_equal
    for index, other in enumerate([1.0, -np.inf, np.nan, np.inf]):
        wrong = values.copy()
        wrong[index] = other
        comparison = compare(wrong, values, "f64")
        assert not comparison.is_equal
        assert comparison.absolute == np.inf


def test_whole_numbers_have_to_be_equal() -> None:
    expected = np.array([2**62, 5], np.int64)
    assert compare(expected, expected, "i64").is_equal
    comparison = compare(expected + np.array([1, 0]), expected, "i64")
    assert not comparison.is_equal
    assert comparison.absolute == 1.0
    assert not compare(np.array([True, False]), np.array([True, True]), "i1").is_equal
    assert compare(np.array([255], np.uint8), np.array([0], np.uint8), "ui8").absolute == 255.0


def test_arrays_without_elements_are_equal() -> None:
    for element_type, dtype in (("f32", np.float32), ("i32", np.int32)):
        assert compare(np.zeros((0, 3), dtype), np.zeros((0, 3), dtype), element_type).is_equal


def test_a_tensor_of_zeros_has_to_be_met() -> None:
    assert compare(np.zeros(3), np.zeros(3), "f64").is_equal
    assert not compare(np.array([0, 1e-30, 0]), np.zeros(3), "f64").is_equal
