# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the floats through which the results of a program are computed."""

from __future__ import annotations

import numpy as np
from runtime.test_interface import parse

from mlir_shard.runtime import interface
from mlir_shard.runtime.reference.verify import coarsest_floats, compare


def test_the_coarsest_float_on_the_way_to_each_result() -> None:
    module = parse("""
      func.func private @half(%a: tensor<4xf64>) -> tensor<4xf64> {
        %0 = stablehlo.convert %a : (tensor<4xf64>) -> tensor<4xf16>
        %1 = stablehlo.convert %0 : (tensor<4xf16>) -> tensor<4xf64>
        return %1 : tensor<4xf64>
      }
      func.func @main(%a: tensor<4xf64>, %b: tensor<4xbf16>, %t: !stablehlo.token, %i: tensor<4xi32>)
          -> (tensor<4xf64>, tensor<4xf64>, !stablehlo.token, tensor<4xf64>, tensor<4xf64>, tensor<4xi32>) {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %0 = stablehlo.negate %a : tensor<4xf64>
        %1 = call @half(%0) : (tensor<4xf64>) -> tensor<4xf64>
        %2 = "stablehlo.case"(%zero) ({
          %3 = stablehlo.convert %b : (tensor<4xbf16>) -> tensor<4xf64>
          stablehlo.return %3 : tensor<4xf64>
        }) : (tensor<i32>) -> tensor<4xf64>
        %4 = stablehlo.add %1, %2 : tensor<4xf64>
        return %0, %1, %t, %2, %4, %i
          : tensor<4xf64>, tensor<4xf64>, !stablehlo.token, tensor<4xf64>, tensor<4xf64>, tensor<4xi32>
      }""")
    found = coarsest_floats(module, interface.entry_function(module, "main"))
    assert found == ("f64", "f16", "bf16", "bf16", "")


def test_of_several_blocks_all_count() -> None:
    module = parse("""
      func.func @main(%a: f64, %b: bf16) -> (f64, f64) {
        %0 = arith.extf %b : bf16 to f64
        cf.br ^bb1(%0 : f64)
      ^bb1(%1: f64):
        return %a, %1 : f64, f64
      }""")
    assert coarsest_floats(module, interface.entry_function(module, "main")) == ("bf16", "bf16")


def test_floats_are_as_exact_as_the_coarsest() -> None:
    expected = np.ones(3, np.float32)
    assert not compare(expected * np.float32(1.01), expected, "f32").is_equal
    assert compare(expected * np.float32(1.01), expected, "f32", "bf16").is_equal
    assert not compare(expected * np.float32(1.2), expected, "f32", "bf16").is_equal
    assert not compare(np.array([2]), np.array([1]), "i32", "bf16").is_equal
