# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of views of tensors without dimensions, before bufferization; `test_lowering.py` runs them in branches."""

from __future__ import annotations

import mlir_shard
from mlir_shard.ir.editing import operations_named
from mlir_shard.runtime.lowering import scalar_views

_TO_BUFFERS = (
    "one-shot-bufferize{allow-return-allocs-from-loops=true bufferize-function-boundaries=true "
    "function-boundary-type-conversion=identity-layout-map}"
)


def test_a_loop_begins_with_a_slice_and_yields_a_view_of_a_scalar() -> None:
    """Without the pass the copy of the slice gets an allocation of unknown offset, which is not valid."""
    text = """
      func.func @main(%x: tensor<4xf64>, %scalar: tensor<f64>, %at: index, %length: index) -> tensor<1xf64> {
        %zero = arith.constant 0 : i32
        %steps = arith.constant 3 : i32
        %element = arith.constant 0.0 : f64
        %written = tensor.insert %element into %x[%at] : tensor<4xf64>
        %part = tensor.extract_slice %written[%at] [%length] [1] : tensor<4xf64> to tensor<?xf64>
        %slice = tensor.cast %part : tensor<?xf64> to tensor<1xf64>
        %0:2 = scf.while (%i = %zero, %carried = %slice) : (i32, tensor<1xf64>) -> (i32, tensor<1xf64>) {
          %more = arith.cmpi slt, %i, %steps : i32
          scf.condition(%more) %i, %carried : i32, tensor<1xf64>
        } do {
        ^bb0(%i: i32, %carried: tensor<1xf64>):
          %empty = tensor.empty() : tensor<f64>
          %sum = linalg.add ins(%scalar, %scalar : tensor<f64>, tensor<f64>) outs(%empty : tensor<f64>) -> tensor<f64>
          %view = tensor.expand_shape %sum [] output_shape [1] : tensor<f64> into tensor<1xf64>
          %next = arith.addi %i, %steps : i32
          scf.yield %next, %view : i32, tensor<1xf64>
        }
        return %0#1 : tensor<1xf64>
      }"""
    module = mlir_shard.parse(text, mlir_shard.create_context())
    with module.context:
        scalar_views.separate(module)
    assert not operations_named(module.operation, "tensor.expand_shape")
    mlir_shard.run(module, f"builtin.module({_TO_BUFFERS})")
    assert not operations_named(module.operation, "tensor.insert")
