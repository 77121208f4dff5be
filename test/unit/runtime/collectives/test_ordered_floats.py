# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the maximum and minimum of floats over ranks: NaN if any is NaN, and -0 is less than 0."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.local_program import needs_mpich, run_local


@needs_mpich
@pytest.mark.parametrize("element_type", ["f16", "f32", "f64"])
def test_nan_and_signed_zeros_are_kept(element_type: str) -> None:
    dtype = np.dtype(element_type.replace("f", "float"))
    type_ = f"tensor<5x{element_type}>"
    inputs = [
        np.array([1, -0.0, -np.nan, -3, np.inf], dtype),
        np.array([np.nan, 0.0, 2, -2, 1], dtype),
        np.array([3, -0.0, 5, -5, -np.inf], dtype),
    ]
    body = "\n".join(
        f"%{place} = shard.all_reduce %a on @g grid_axes = [0] reduction = {reduction} : {type_} -> {type_}"
        for place, reduction in enumerate(("max", "min"))
    )
    for greatest, least in run_local((3,), f"5x{element_type}", body, [f"5x{element_type}"] * 2, inputs):
        np.testing.assert_array_equal(greatest, np.array([np.nan, 0, np.nan, -2, np.inf], dtype))
        np.testing.assert_array_equal(least, np.array([np.nan, 0, np.nan, -5, -np.inf], dtype))
        assert not np.signbit(greatest[1])
        assert np.signbit(least[1])
