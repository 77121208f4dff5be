# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of arguments that must be positive."""

from __future__ import annotations

import numpy as np
import pytest

import mlir_shard
from mlir_shard.runtime.arrays import TensorSpec, random
from mlir_shard.runtime.interface import entry_function
from mlir_shard.runtime.positive_arguments import positive_arguments

PROGRAMS = {
    "the second moment of Adam": (
        """func.func @main(%m: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
          %c = stablehlo.constant dense<0.999> : tensor<4xf32>
          %0 = stablehlo.multiply %v, %c : tensor<4xf32>
          %1 = stablehlo.multiply %g, %g : tensor<4xf32>
          %2 = stablehlo.add %0, %1 : tensor<4xf32>
          %3 = stablehlo.sqrt %2 : tensor<4xf32>
          %4 = stablehlo.divide %m, %3 : tensor<4xf32>
          return %4 : tensor<4xf32>
        }""",
        {1},
    ),
    "a variance in linalg": (
        """func.func @main(%x: tensor<2x4xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
          %eps = arith.constant 1.0e-5 : f32
          %e = tensor.empty() : tensor<2x4xf32>
          %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
              affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
              ins(%x, %v : tensor<2x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4xf32>) {
          ^bb0(%a: f32, %b: f32, %o: f32):
            %s = arith.addf %b, %eps : f32
            %r = math.rsqrt %s : f32
            %p = arith.mulf %a, %r : f32
            linalg.yield %p : f32
          } -> tensor<2x4xf32>
          return %0 : tensor<2x4xf32>
        }""",
        {1},
    ),
    "batch normalization": (
        """func.func @main(%x: tensor<2x4xf32>, %s: tensor<4xf32>, %v: tensor<4xf32>, %n: tensor<i32>)
            -> tensor<2x4xf32> {
          %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %v) {epsilon = 0.0 : f32, feature_index = 1 : i64}
            : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
          return %0 : tensor<2x4xf32>
        }""",
        {2},
    ),
    "a difference": (
        """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
          %0 = stablehlo.subtract %x, %y : tensor<4xf32>
          %1 = stablehlo.log %0 : tensor<4xf32>
          return %1 : tensor<4xf32>
        }""",
        set(),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_positive_arguments(name: str) -> None:
    text, expected = PROGRAMS[name]
    module = mlir_shard.parse(text, mlir_shard.create_context())
    assert positive_arguments(entry_function(module, "main")) == expected


def test_random_positive_numbers() -> None:
    spec = TensorSpec((1000,), "f32")
    drawn = random(spec, np.random.default_rng(0), positive=True)
    assert drawn.dtype == np.float32
    assert 0.5 <= drawn.min() < drawn.max() <= 1.5
    assert random(spec, np.random.default_rng(0)).min() < 0
