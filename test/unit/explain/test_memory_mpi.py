# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the memory that an MPI rank needs, as far as it depends on fused kernels and the lowering of collectives."""

from __future__ import annotations

import pytest
from small_programs import BYTES, SQUARE, STAGED, main, of, product, returned, unary

from mlir_shard.explain.memory import PeakMemory


@pytest.mark.parametrize(
    ("other", "expected"),
    [pytest.param("(i, j)", 2, id="read at the same place"), pytest.param("(j, i)", 3, id="read transposed too")],
)
def test_a_generic_takes_what_it_reads_at_one_place(other: str, expected: int) -> None:
    same = "affine_map<(i, j) -> (i, j)>"
    body = f"""
      {unary("a", "negate", "x")}
      %e = tensor.empty() : {SQUARE}
      %b = linalg.generic {{indexing_maps = [{same}, affine_map<(i, j) -> {other}>, {same}],
          iterator_types = ["parallel", "parallel"]}} ins(%a, %a : {SQUARE}, {SQUARE}) outs(%e : {SQUARE}) {{
      ^bb0(%l: f32, %r: f32, %o: f32):
        %s = arith.mulf %l, %r : f32
        linalg.yield %s : f32
      }} -> {SQUARE}
      {returned("b")}"""

    assert of(main(body), "mpi").peak == expected * BYTES


def test_mpi_stages_what_is_gathered_along_an_inner_dimension() -> None:
    along_rows = STAGED.replace("gather_axis = 1", "gather_axis = 0").replace("16x16xf32", "64x4xf32")

    assert of(STAGED).collectives == BYTES
    assert of(STAGED).peak == of(along_rows).peak + BYTES


def test_mpi_stages_nothing_where_the_outer_dimensions_have_one_element() -> None:
    gathered = """shard.grid @mesh(shape = 2)
func.func @main(%x: tensor<1x16x16xf32>) -> tensor<1x32x16xf32> {
  %0 = shard.all_gather %x on @mesh grid_axes = [0] gather_axis = 1 : tensor<1x16x16xf32> -> tensor<1x32x16xf32>
  return %0 : tensor<1x32x16xf32>
}"""
    assert of(gathered).peak == 3 * BYTES


def test_what_is_gathered_is_read_in_its_order_by_what_it_is_fused_into() -> None:
    added = """%zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
    return %sum : tensor<f32>"""
    text = STAGED.replace("return %y : tensor<16x16xf32>", added).replace("-> tensor<16x16xf32> {", "-> tensor<f32> {")
    assert of(text, "mpi").peak == BYTES // 4 + BYTES + 4


def test_what_is_packed_is_computed_where_it_is_packed_on_mpi() -> None:
    body = f"""%packed = tensor.empty() : tensor<32x16xf32>
{product("a", "x")}
{product("b", "x", "y")}
%0 = tensor.insert_slice %a into %packed[0, 0] [16, 16] [1, 1] : {SQUARE} into tensor<32x16xf32>
%1 = tensor.insert_slice %b into %0[16, 0] [16, 16] [1, 1] : {SQUARE} into tensor<32x16xf32>
return %1 : tensor<32x16xf32>"""
    found = of(main(body, f"%x: {SQUARE}, %y: {SQUARE}", "tensor<32x16xf32>"), "mpi")
    assert found.peak == (2 + 2) * BYTES


def test_a_scatter_reads_wide_indices_and_filled_updates_on_mpi() -> None:
    body = """%one = stablehlo.constant dense<1.0> : tensor<f32>
%ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<64xf32>
%0 = "stablehlo.scatter"(%x, %at, %ones) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
}) : (tensor<256xf32>, tensor<64x1xi32>, tensor<64xf32>) -> tensor<256xf32>
return %0 : tensor<256xf32>"""
    found = of(main(body, "%x: tensor<256xf32>, %at: tensor<64x1xi32>", "tensor<256xf32>"), "mpi")
    assert found.arguments == BYTES + 256
    assert found.results + found.temporaries == BYTES + 512 + 256


@pytest.mark.parametrize("factor, copies", [("1.0", 0), ("2.0", 1)])
def test_a_product_with_ones_is_folded_on_mpi(factor: str, copies: int) -> None:
    body = f"""%factor = stablehlo.constant dense<{factor}> : tensor<f32>
%factors = stablehlo.broadcast_in_dim %factor, dims = [] : (tensor<f32>) -> {SQUARE}
%scaled = stablehlo.multiply %factors, %x : {SQUARE}
{product("0", "scaled")}
{returned("0")}"""
    assert of(main(body), "mpi").peak == (2 + copies) * BYTES


def test_numbers_of_elements_are_computed_at_each_use_on_mpi() -> None:
    def reading(made: str, arguments: str) -> PeakMemory:
        body = f"""{made}
%wide = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<16xf32>) -> {SQUARE}
%a = stablehlo.add %x, %wide : {SQUARE}
%b = stablehlo.multiply %x, %wide : {SQUARE}
{returned("a", "b")}"""
        return of(main(body, arguments, f"{SQUARE}, {SQUARE}"), "mpi")

    assert reading("%row = stablehlo.iota dim = 0 : tensor<16xf32>", f"%x: {SQUARE}").peak == 3 * BYTES + 64
    assert reading("", f"%x: {SQUARE}, %row: tensor<16xf32>").peak == 4 * BYTES + 64


def test_what_two_kernels_read_is_in_memory_however_often_one_reads_it() -> None:
    body = "\n".join(
        [
            unary("t", "tanh", "x"),
            unary("a", "abs", "t"),
            unary("e", "exponential", "t"),
            unary("s", "sine", "t"),
            f"%m = stablehlo.multiply %e, %s : {SQUARE}",
            returned("a", "m"),
        ]
    )
    assert of(main(body, results=f"{SQUARE}, {SQUARE}"), "mpi").peak == 4 * BYTES


def test_the_kernel_of_a_convolution_is_dilated_in_memory_on_mpi() -> None:
    body = """%0 = stablehlo.convolution(%x, %k) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f],
    window = {rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x9x8xf32>, tensor<2x4x8xf32>) -> tensor<3x8x8xf32>
return %0 : tensor<3x8x8xf32>"""
    found = of(main(body, "%x: tensor<2x9x8xf32>, %k: tensor<2x4x8xf32>", "tensor<3x8x8xf32>"), "mpi")
    assert found.temporaries == 2 * 7 * 8 * 4


def test_a_part_that_is_flattened_is_copied_on_mpi() -> None:
    def of_part(limit: str) -> str:
        return f"""
          {product("a", "x")}
          %s = stablehlo.slice %a [0:8, 0:{limit}] : ({SQUARE}) -> tensor<8x{limit}xf32>
          %f = stablehlo.reshape %s : (tensor<8x{limit}xf32>) -> tensor<{8 * int(limit)}xf32>
          %g = stablehlo.dot %f, %f : (tensor<{8 * int(limit)}xf32>, tensor<{8 * int(limit)}xf32>) -> tensor<f32>
          return %g : tensor<f32>"""

    # Whole rows are contiguous, and halves of rows are not.
    assert of(main(of_part("16"), results="tensor<f32>"), "mpi").peak == 2 * BYTES + 4
    assert of(main(of_part("8"), results="tensor<f32>"), "mpi").peak == 2 * BYTES + BYTES // 4


@pytest.mark.parametrize("splits", [False, True])
def test_a_broadcast_operand_has_no_memory_on_mpi_where_the_product_is_expanded(splits: bool) -> None:
    result = "tensor<4x8x2x8xf32>" if splits else "tensor<4x128xf32>"
    body = f"""
      %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({SQUARE}) -> tensor<4x16x16xf32>
      %p = stablehlo.dot_general %y, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<4x8x16xf32>, tensor<4x16x16xf32>) -> tensor<4x8x16xf32>
      %r = stablehlo.reshape %p : (tensor<4x8x16xf32>) -> {result}
      %s = stablehlo.sine %r : {result}
      return %s : {result}"""
    arguments = 3 * BYTES
    found = of(main(body, f"%x: {SQUARE}, %y: tensor<4x8x16xf32>", result), "mpi")

    # The product and its sine are live together, or the broadcast operand and the product.
    assert found.peak == arguments + (2 * 2 * BYTES if splits else (4 + 2) * BYTES)


def test_views_and_products_of_tosa_on_mpi() -> None:
    body = """
      %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %shape = tosa.const_shape {values = dense<[1, 16, 16]> : tensor<3xindex>} : () -> !tosa.shape<3>
      %a = tosa.reshape %x, %shape : (tensor<16x16xf32>, !tosa.shape<3>) -> tensor<1x16x16xf32>
      %b = tosa.matmul %a, %a, %zero, %zero
        : (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x16x16xf32>
      return %b : tensor<1x16x16xf32>"""

    assert of(main(body, results="tensor<1x16x16xf32>"), "mpi").peak == 2 * BYTES
