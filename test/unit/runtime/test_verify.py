# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When two arrays count as the same result."""

from __future__ import annotations

import numpy as np
import pytest

from mlir_shard.runtime.reference.verify import TOLERANCES, compare


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
