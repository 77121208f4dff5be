# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of loop nests of local programs: equal ones become one function, whatever its arguments are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from runtime import in_process


def layers(count: int) -> str:
    """Returns layers that transpose and scale, which are loops."""
    lines = ["func.func @main(%v0: tensor<24x24xf32>) -> tensor<24x24xf32> {"]
    lines += [
        f"""
        %t{one} = stablehlo.transpose %v{one}, dims = [1, 0] : (tensor<24x24xf32>) -> tensor<24x24xf32>
        %m{one} = stablehlo.optimization_barrier %t{one} : tensor<24x24xf32>
        %c{one} = stablehlo.cosine %m{one} : tensor<24x24xf32>
        %v{one + 1} = stablehlo.optimization_barrier %c{one} : tensor<24x24xf32>"""
        for one in range(count)
    ]
    return "\n".join([*lines, f"  return %v{count} : tensor<24x24xf32>", "}"])


def functions_of_loops(text: str) -> int:
    """Returns the number of functions of loops in the lowered program."""
    (lowered,) = in_process.lower([text], "main")
    return lowered.count("llvm.func internal @loops.")


def test_layers_share_their_loops() -> None:
    assert 0 < functions_of_loops(layers(3)) == functions_of_loops(layers(9))


def test_shared_loops_compute_what_loops_do() -> None:
    x = np.linspace(-1, 1, 576, dtype=np.float32).reshape(24, 24)
    expected = x
    for _ in range(5):
        expected = np.cos(expected.T)
    np.testing.assert_allclose(in_process.run(layers(5), x)[0], expected, rtol=1e-5)


def test_loops_that_read_where_they_write() -> None:
    """A function for disjoint memory must not be called if two of its arguments are in the same memory."""
    text = """
      func.func @main(%x: memref<16xf32>, %y: memref<8xf32>) -> (memref<16xf32>, memref<8xf32>) {
        %0 = memref.alloc() : memref<16xf32>
        memref.copy %x, %0 : memref<16xf32> to memref<16xf32>
        %1 = memref.alloc() : memref<8xf32>
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c8 = arith.constant 8 : index
        %low = memref.subview %0[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
        %high = memref.subview %0[1] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 1>>
        %other = memref.subview %x[1] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 1>>
        scf.for %i = %c0 to %c8 step %c1 {
          %v = memref.load %low[%i] : memref<8xf32, strided<[1]>>
          memref.store %v, %high[%i] : memref<8xf32, strided<[1], offset: 1>>
        }
        memref.copy %y, %1 : memref<8xf32> to memref<8xf32>
        return %0, %1 : memref<16xf32>, memref<8xf32>
      }"""
    (lowered,) = in_process.lower([text], "main")
    (_, *functions) = lowered.split("llvm.func internal @loops.")
    together = [one for one in functions if "llvm.noalias" not in one.split("{\n")[0]]
    assert len(together) == 1


def test_scalars_and_constants_of_loops() -> None:
    text = """
      func.func @main(%x: tensor<8x8xf32>, %scale: tensor<f32>, %low: tensor<bf16>)
          -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>) {
        %two = stablehlo.constant dense<2.0> : tensor<8x8xf32>
        %three = stablehlo.constant dense<3.0> : tensor<8x8xf32>
        %0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
        %1 = stablehlo.multiply %x, %0 : tensor<8x8xf32>
        %2 = stablehlo.add %1, %two : tensor<8x8xf32>
        %3 = stablehlo.add %1, %three : tensor<8x8xf32>
        %4 = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<bf16>) -> tensor<8x8xbf16>
        return %2, %3, %4 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>
      }"""
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    low = np.array(3, ml_dtypes.bfloat16)
    two, three, filled = in_process.run(text, x, np.array(0.5, np.float32), low)
    np.testing.assert_array_equal(two, x / 2 + 2)
    np.testing.assert_array_equal(three, x / 2 + 3)
    assert np.asarray(filled).astype(np.float32).tolist() == [[3.0] * 8] * 8
