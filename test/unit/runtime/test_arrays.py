# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of arrays as inputs and outputs of compiled programs, and of their division into shards."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import TensorSpec
from mlir_shard.runtime.error import RunError
from mlir_shard.sharding.layout import Box


def test_a_short_block_is_padded_with_zeros() -> None:
    array = np.arange(1, 8, dtype=np.int64)
    np.testing.assert_array_equal(arrays.cut(array, Box((6,), (1,)), (3,)), [7, 0, 0])
    np.testing.assert_array_equal(arrays.cut(array, Box((7,), (0,)), (3,)), [0, 0, 0])


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (
            np.zeros((2, 2), np.float32),
            "argument 0 of the program is tensor<2x3xf32>, but the given array has shape 2x2",
        ),
        (np.zeros((), np.float32), r"tensor<2x3xf32>, but the given array has shape \(\)"),
        (np.zeros((2, 3)), "tensor<2x3xf32>, but the given array has dtype float64, not float32"),
        (np.zeros((2, 3), object), "has dtype object, not float32"),
    ],
)
def test_an_array_of_another_type_is_refused(array: arrays.Array, complaint: str) -> None:
    with pytest.raises(RunError, match=complaint):
        arrays.checked("argument 0", array, TensorSpec((2, 3), "f32"))


def test_a_transposed_array_is_laid_out_anew() -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 2).T
    checked = arrays.checked("argument 0", array, TensorSpec((2, 3), "f32"))
    assert checked.flags.c_contiguous
    np.testing.assert_array_equal(checked, array)


def test_bf16_travels_as_its_bits() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.0, -2.5], ml_dtypes.bfloat16)
    stored = arrays.checked("argument 0", array, TensorSpec((2,), "bf16"))
    assert stored.dtype == np.uint16
    np.testing.assert_array_equal(stored, [0x3F80, 0xC020])
    # NumPy's files load as this type.
    np.testing.assert_array_equal(arrays.checked("argument 0", array.view("V2"), TensorSpec((2,), "bf16")), stored)
    np.testing.assert_array_equal(arrays.presented(stored, "bf16"), array)


def test_bf16_without_ml_dtypes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without_ml_dtypes(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "ml_dtypes":
            raise ModuleNotFoundError(name)
        return found(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_ml_dtypes)
    with pytest.raises(RunError, match="bf16 arrays need the package ml_dtypes: pip install ml_dtypes"):
        arrays.numpy_dtype("bf16")


@pytest.mark.parametrize("element_type", ["f64", "f32", "f16", "i1", "i8", "i32", "index", "ui8", "complex<f32>"])
def test_random_arrays_are_of_the_type_and_the_same_for_a_seed(element_type: str) -> None:
    spec = TensorSpec((50, 3), element_type)
    first, second = (arrays.random(spec, np.random.default_rng(3)) for _ in range(2))
    assert first.shape == spec.shape
    assert first.dtype == arrays.numpy_dtype(element_type)
    assert len(np.unique(first)) > 1
    np.testing.assert_array_equal(first, second)
    assert arrays.random(TensorSpec((), element_type), np.random.default_rng(3)).shape == ()
