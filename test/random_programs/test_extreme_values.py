# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares StableHLO operations on extreme values of a few element types by LLVM with XLA."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.local_program import needs_jax, spec

from mlir_shard.runtime.program import Port
from mlir_shard.sharding.layout import Box
from random_programs.execution import RIGHT
from random_programs.extreme_values import difference, inputs, program
from random_programs.whole_programs import outcome, reference


@needs_jax
def test_extreme_values_by_llvm_and_by_xla() -> None:
    with reference() as xla:
        for element in ("f32", "f8E4M3FN", "i32", "ui8", "i1", "complex<f32>"):
            text, names = program(element)
            found = outcome(text, inputs, xla, difference)
            assert found.kind == RIGHT, (element, found.detail, names)


@pytest.mark.parametrize(
    ("got", "wanted"), [(0.0, -0.0), (1.0, 1.0001), (np.nan, 1.0), (np.inf, 3e38), (1e-30, 2e-30), (1e-37, 0.0)]
)
def test_each_element_is_compared_at_its_own_scale(got: float, wanted: float) -> None:
    type_ = spec("2xf32")
    port = Port("result 0", type_, type_, (Box((0,), (2,)),))
    one, other = np.array([1e10, got], np.float32), np.array([1e10, wanted], np.float32)
    assert "1 of 2 elements" in difference(one, other, port)
    assert not difference(one, one, port)
