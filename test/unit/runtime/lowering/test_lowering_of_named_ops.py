# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of ops of linalg that are not loop nests, and of TOSA with zero points that are arguments, on one device."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.in_process import run

GENERATOR = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def test_softmax() -> None:
    x = floats(3, 5, 2)
    (result,) = run(
        """func.func @main(%x: tensor<3x5x2xf32>) -> tensor<3x5x2xf32> {
          %e = tensor.empty() : tensor<3x5x2xf32>
          %0 = linalg.softmax dimension(1) ins(%x : tensor<3x5x2xf32>) outs(%e : tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
          return %0 : tensor<3x5x2xf32>
        }""",
        x,
    )
    powers = np.exp(x)
    np.testing.assert_allclose(result, powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_pack_and_unpack() -> None:
    x, filling = floats(6, 7), np.float32(-1)
    packed, unpacked = run(
        """func.func @main(%x: tensor<6x7xf32>, %filling: f32) -> (tensor<2x3x4x2xf32>, tensor<6x7xf32>) {
          %e = tensor.empty() : tensor<2x3x4x2xf32>
          %p = linalg.pack %x padding_value(%filling : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
            inner_tiles = [4, 2] into %e : tensor<6x7xf32> -> tensor<2x3x4x2xf32>
          %u = tensor.empty() : tensor<6x7xf32>
          %0 = linalg.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [4, 2] into %u
            : tensor<2x3x4x2xf32> -> tensor<6x7xf32>
          return %p, %0 : tensor<2x3x4x2xf32>, tensor<6x7xf32>
        }""",
        x,
        filling,
    )
    padded = np.pad(x, ((0, 0), (0, 1)), constant_values=-1)
    np.testing.assert_array_equal(packed, padded.reshape(3, 2, 2, 4).transpose(2, 0, 3, 1))
    np.testing.assert_array_equal(unpacked, x)


def test_a_convolution_by_winograd() -> None:
    """F(4, 3): the program transforms the input and the filter, multiplies them, and transforms the product."""
    image, kernel = floats(1, 6, 6, 2), floats(3, 3, 3, 2)
    (result,) = run(
        """func.func @main(%image: tensor<1x6x6x2xf32>, %kernel: tensor<3x3x3x2xf32>) -> tensor<1x4x4x3xf32> {
          %e0 = tensor.empty() : tensor<6x6x2x3xf32>
          %f = linalg.winograd_filter_transform fmr(F_4_3) ins(%kernel : tensor<3x3x3x2xf32>)
            outs(%e0 : tensor<6x6x2x3xf32>) -> tensor<6x6x2x3xf32>
          %e1 = tensor.empty() : tensor<6x6x1x1x1x2xf32>
          %i = linalg.winograd_input_transform fmr(F_4_3) ins(%image : tensor<1x6x6x2xf32>)
            outs(%e1 : tensor<6x6x1x1x1x2xf32>) -> tensor<6x6x1x1x1x2xf32>
          %fs = tensor.collapse_shape %f [[0, 1], [2], [3]] : tensor<6x6x2x3xf32> into tensor<36x2x3xf32>
          %is = tensor.collapse_shape %i [[0, 1], [2, 3, 4], [5]] : tensor<6x6x1x1x1x2xf32> into tensor<36x1x2xf32>
          %zero = arith.constant 0.0 : f32
          %e2 = tensor.empty() : tensor<36x1x3xf32>
          %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<36x1x3xf32>) -> tensor<36x1x3xf32>
          %m = linalg.batch_matmul ins(%is, %fs : tensor<36x1x2xf32>, tensor<36x2x3xf32>)
            outs(%start : tensor<36x1x3xf32>) -> tensor<36x1x3xf32>
          %ms = tensor.expand_shape %m [[0, 1], [2, 3, 4], [5]] output_shape [6, 6, 1, 1, 1, 3]
            : tensor<36x1x3xf32> into tensor<6x6x1x1x1x3xf32>
          %e3 = tensor.empty() : tensor<1x4x4x3xf32>
          %begin = linalg.fill ins(%zero : f32) outs(%e3 : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
          %0 = linalg.winograd_output_transform fmr(F_4_3) ins(%ms : tensor<6x6x1x1x1x3xf32>)
            outs(%begin : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
          return %0 : tensor<1x4x4x3xf32>
        }""",
        image,
        kernel,
    )
    windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(0, 1))
    np.testing.assert_allclose(result[0], np.einsum("hwcij,fijc->hwf", windows, kernel), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_quantized_product_with_zero_points_as_arguments(transposed: bool) -> None:
    a, b = (GENERATOR.integers(-128, 128, shape, np.int8) for shape in ((2, 3, 4), (2, 4, 5)))
    points = np.array([3], np.int8), np.array([-7], np.int8)
    name, shape = ("matmul_t", "2x5x4") if transposed else ("matmul", "2x4x5")
    (result,) = run(
        f"""func.func @main(%a: tensor<2x3x4xi8>, %b: tensor<{shape}xi8>, %y: tensor<1xi8>, %z: tensor<1xi8>)
            -> tensor<2x3x5xi32> {{
          %0 = tosa.{name} %a, %b, %y, %z
            : (tensor<2x3x4xi8>, tensor<{shape}xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<2x3x5xi32>
          return %0 : tensor<2x3x5xi32>
        }}""",
        a,
        np.ascontiguousarray(b.swapaxes(1, 2)) if transposed else b,
        *points,
    )
    np.testing.assert_array_equal(result, (a.astype(np.int32) - 3) @ (b.astype(np.int32) + 7))


def test_zero_points_of_floats() -> None:
    x, zero = floats(2, 3), np.zeros(1, np.float32)
    (result,) = run(
        """func.func @main(%x: tensor<2x3xf32>, %z: tensor<1xf32>) -> tensor<2x3xf32> {
          %0 = tosa.negate %x, %z, %z : (tensor<2x3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x3xf32>
          return %0 : tensor<2x3xf32>
        }""",
        x,
        zero,
    )
    np.testing.assert_array_equal(result, -x)


def test_rows_are_scattered() -> None:
    before, updates = floats(2, 5, 3), floats(2, 2, 3)
    rows = np.array([[4, 0], [1, 2]], np.int32)
    (result,) = run(
        """func.func @main(%x: tensor<2x5x3xf32>, %rows: tensor<2x2xi32>, %u: tensor<2x2x3xf32>) -> tensor<2x5x3xf32> {
          %0 = tosa.scatter %x, %rows, %u : (tensor<2x5x3xf32>, tensor<2x2xi32>, tensor<2x2x3xf32>) -> tensor<2x5x3xf32>
          return %0 : tensor<2x5x3xf32>
        }""",
        before,
        rows,
        updates,
    )
    expected = before.copy()
    for batch in range(2):
        expected[batch, rows[batch]] = updates[batch]
    np.testing.assert_array_equal(result, expected)


def test_numbers_are_scaled() -> None:
    x = np.array([-300, -3, 0, 5, 1000], np.int32)
    (result,) = run(
        """func.func @main(%x: tensor<5xi32>) -> tensor<5xi8> {
          %m = "tosa.const"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
          %s = "tosa.const"() {values = dense<31> : tensor<1xi8>} : () -> tensor<1xi8>
          %i = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
          %o = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>
          %0 = tosa.rescale %x, %m, %s, %i, %o {scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false,
            input_unsigned = false, output_unsigned = false}
            : (tensor<5xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<5xi8>
          return %0 : tensor<5xi8>
        }""",
        x,
    )
    np.testing.assert_array_equal(result, np.clip(np.floor(x / 2 + 0.5) + 3, -128, 127).astype(np.int8))
