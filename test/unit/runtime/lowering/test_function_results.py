# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of called functions may be one tensor or parts of one; a write to one result does not change the others."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.in_process import Engine, lower_whole

import mlir_shard
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.execution import run_program

BODIES = {
    "one value": "",
    "a view": """
  %w = tensor.expand_shape %v [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %u = tensor.collapse_shape %w [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>""",
    "one of two": """
  %other = math.cos %a : tensor<8xf32>
  %u = arith.select %p, %v, %other : tensor<8xf32>""",
    "of a region": """
  %u = scf.if %p -> (tensor<8xf32>) {
    scf.yield %v : tensor<8xf32>
  } else {
    scf.yield %a : tensor<8xf32>
  }""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_results_are_apart(body: str) -> None:
    text = f"""
func.func @main(%a: tensor<8xf32>, %p: i1) -> (tensor<8xf32>, tensor<8xf32>) {{
  %0:2 = call @f(%a, %p) : (tensor<8xf32>, i1) -> (tensor<8xf32>, tensor<8xf32>)
  %at = arith.constant 0 : index
  %seven = arith.constant 7.0 : f32
  %1 = tensor.insert %seven into %0#1[%at] : tensor<8xf32>
  return %0#0, %1 : tensor<8xf32>, tensor<8xf32>
}}
func.func private @f(%a: tensor<8xf32>, %p: i1) -> (tensor<8xf32>, tensor<8xf32>) {{
  %v = math.sin %a : tensor<8xf32>{body}
  return %v, {"%u" if body else "%v"} : tensor<8xf32>, tensor<8xf32>
}}"""
    given = np.arange(8, dtype=np.float32)
    # Calls are inlined, except in the program without sharding.
    module = mlir_shard.parse(text, mlir_shard.create_context())
    program = compile_module(module, with_unsharded=True, lower=lower_whole).unsharded
    assert program is not None
    first, second = (one.array for one in run_program(program, [given, np.array(True)], Engine()))
    np.testing.assert_allclose(first, np.sin(given), rtol=1e-6)
    np.testing.assert_allclose(second, [7, *np.sin(given[1:])], rtol=1e-6)
