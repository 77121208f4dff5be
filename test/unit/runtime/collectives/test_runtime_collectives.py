# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of collectives of upstream's shard dialect in programs: in loops, in functions, with extreme values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from runtime.local_program import needs_mpich, run_local

import mlir_shard as ms
from mlir_shard.runtime.arrays import Array, numpy_dtype

pytestmark = needs_mpich


def test_communicators_are_made_once() -> None:
    """MPICH has about two thousand communicators; this loop, which also calls a function, has more iterations."""
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 3000 : index
      %0 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<2xi32>) {
        %y = shard.all_reduce %x on @g grid_axes = [1] reduction = max : tensor<2xi32> -> tensor<2xi32>
        %z = func.call @step(%y) : (tensor<2xi32>) -> tensor<2xi32>
        scf.yield %z : tensor<2xi32>
      }"""
    step = """
      func.func private @step(%x: tensor<2xi32>) -> tensor<2xi32> {
        %y = shard.all_reduce %x on @g grid_axes = [0] reduction = max : tensor<2xi32> -> tensor<2xi32>
        return %y : tensor<2xi32>
      }"""
    inputs = [np.array([rank, 5 - rank], np.int32) for rank in range(4)]
    returned = run_local((2, 2), "2xi32", body, ["2xi32"], inputs, functions=step)
    for rank in range(4):
        np.testing.assert_array_equal(returned[rank][0], [3, 5])


def test_sends_in_a_loop_go_around_a_ring() -> None:
    """Every iteration sends before it receives, and sends more than MPI accepts without a receiver."""
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %me = shard.process_multi_index on @g axes = [0] : index
      %above = arith.addi %me, %c1 : index
      %below = arith.addi %me, %c2 : index
      %to = arith.remui %above, %c3 : index
      %from = arith.remui %below, %c3 : index
      %0 = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %a) -> (tensor<50000xf64>) {
        %s = shard.send %x on @g grid_axes = [0] destination = [%to] : (tensor<50000xf64>, index) -> tensor<50000xf64>
        %r = shard.recv %x on @g grid_axes = [0] source = [%from] : (tensor<50000xf64>, index) -> tensor<50000xf64>
        scf.yield %r : tensor<50000xf64>
      }"""
    inputs = [np.full(50000, rank, np.float64) for rank in range(3)]
    returned = run_local((3,), "50000xf64", body, ["50000xf64"], inputs)
    for rank in range(3):
        np.testing.assert_array_equal(returned[rank][0], inputs[(rank - 2) % 3])


def test_what_is_sent_may_be_overwritten() -> None:
    """A message has the value of the tensor when it was sent, even if the tensor has changed before it is received."""
    body = """
      %c0 = arith.constant 0 : index
      %me = shard.process_linear_index on @g : index
      %sends = arith.cmpi eq, %me, %c0 : index
      %new = arith.constant 7 : i32
      %0 = scf.if %sends -> (tensor<2xi32>) {
        %s = shard.send %a on @g grid_axes = [0] destination = [1] : (tensor<2xi32>) -> tensor<2xi32>
        %w = tensor.insert %new into %s[%c0] : tensor<2xi32>
        %b = shard.broadcast %w on @g grid_axes = [0] root = [0] : (tensor<2xi32>) -> tensor<2xi32>
        scf.yield %b : tensor<2xi32>
      } else {
        %b = shard.broadcast %a on @g grid_axes = [0] root = [0] : (tensor<2xi32>) -> tensor<2xi32>
        %r = shard.recv %b on @g grid_axes = [0] source = [0] : (tensor<2xi32>) -> tensor<2xi32>
        scf.yield %r : tensor<2xi32>
      }"""
    returned = run_local((2,), "2xi32", body, ["2xi32"], [np.array([1, 2], np.int32), np.array([3, 4], np.int32)])
    np.testing.assert_array_equal(returned[0][0], [7, 2])
    np.testing.assert_array_equal(returned[1][0], [1, 2])


@pytest.mark.parametrize("bits", [8, 64])
def test_unsigned_integers_are_ordered_without_a_sign(bits: int) -> None:
    type_, top = f"2xui{bits}", 2**bits - 1
    tensor = f"tensor<{type_}>"
    body = "\n".join(
        f"%{index} = shard.all_reduce %a on @g grid_axes = [0] reduction = {kind} : {tensor} -> {tensor}"
        for index, kind in enumerate(["max", "min", "sum"])
    )
    inputs = [np.array([top, 1], f"uint{bits}"), np.array([3, top - 1], f"uint{bits}")]
    for returned in run_local((2,), type_, body, [type_] * 3, inputs):
        np.testing.assert_array_equal(returned[0], [top, top - 1])
        np.testing.assert_array_equal(returned[1], [3, 1])
        np.testing.assert_array_equal(returned[2], np.array([2, top], f"uint{bits}"))


def test_elements_are_converted_before_they_are_reduced() -> None:
    body = """
      %0 = shard.all_reduce %a on @g grid_axes = [0] : tensor<2xi8> -> tensor<2xi32>
      %1 = shard.reduce %a on @g grid_axes = [0] root = [0] : (tensor<2xi8>) -> tensor<2xf64>
      %2 = shard.reduce_scatter %a on @g grid_axes = [0] scatter_dim = 0 : tensor<2xi8> -> tensor<1xi64>"""
    inputs: list[Array] = [np.array([100, -100], np.int8), np.array([100, -90], np.int8)]
    returned = run_local((2,), "2xi8", body, ["2xi32", "2xf64", "1xi64"], inputs)
    np.testing.assert_array_equal(returned[1][0], [200, -190])
    np.testing.assert_array_equal(returned[0][1], [200.0, -190.0])
    assert [of_rank[2].item() for of_rank in returned] == [200, -190]


def test_complex_tensors_are_moved() -> None:
    body = """
      %n = tensor.empty() : tensor<2xcomplex<f32>>
      %z = linalg.generic {
          indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
        } ins(%a : tensor<2xf32>) outs(%n : tensor<2xcomplex<f32>>) {
        ^bb0(%x: f32, %o: complex<f32>):
          %m = arith.negf %x : f32
          %c = complex.create %x, %m : complex<f32>
          linalg.yield %c : complex<f32>
      } -> tensor<2xcomplex<f32>>
      %w = shard.all_gather %z on @g grid_axes = [0] gather_axis = 0 : tensor<2xcomplex<f32>> -> tensor<4xcomplex<f32>>
      %t = tensor.empty() : tensor<4xf32>
      %0 = linalg.generic {
          indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
        } ins(%w : tensor<4xcomplex<f32>>) outs(%t : tensor<4xf32>) {
        ^bb0(%x: complex<f32>, %o: f32):
          %i = complex.im %x : complex<f32>
          linalg.yield %i : f32
      } -> tensor<4xf32>"""
    returned = run_local((2,), "2xf32", body, ["4xf32"], [np.array([1, 2], "f4"), np.array([3, 4], "f4")])
    np.testing.assert_array_equal(returned[0][0], [-1, -2, -3, -4])


def test_tensor_without_dimensions() -> None:
    body = """
      %0 = shard.all_reduce %a on @g grid_axes = [0] : tensor<f32> -> tensor<f32>
      %1 = shard.broadcast %a on @g grid_axes = [0] root = [1] : (tensor<f32>) -> tensor<f32>
      %2 = shard.reduce %a on @g grid_axes = [0] reduction = max root = [0] : (tensor<f32>) -> tensor<f32>"""
    returned = run_local((2,), "f32", body, ["f32"] * 3, [np.array(1, "f4"), np.array(5, "f4")])
    assert [one.item() for one in returned[0]] == [6, 5, 5]
    assert [one.item() for one in returned[1][:2]] == [6, 5]


def test_halos_of_sizes_that_are_values() -> None:
    body = """
      %two = arith.constant 2 : i64
      %0 = shard.update_halo %a on @g split_axes = [[0]] halo_sizes = [%two, 1] : tensor<6x2xf32>"""
    rows = [np.arange(12, dtype=np.float32).reshape(6, 2) + 100 * rank for rank in range(3)]
    returned = run_local((3,), "6x2xf32", body, ["6x2xf32"], rows)
    middle = np.concatenate([rows[0][3:5], rows[1][2:5], rows[2][2:3]])
    np.testing.assert_array_equal(returned[1][0], middle)
    np.testing.assert_array_equal(returned[0][0], np.concatenate([rows[0][:5], rows[1][2:3]]))
    np.testing.assert_array_equal(returned[2][0], np.concatenate([rows[1][3:5], rows[2][2:]]))


def test_ranks_of_the_processes_are_positions_in_the_grid() -> None:
    body = """
      %i, %j = shard.process_multi_index on @g : index, index
      %k = shard.process_linear_index on @g : index
      %0 = tensor.from_elements %i, %j, %k : tensor<3xindex>"""
    returned = run_local((2, 3), "1xf32", body, ["3xindex"], [np.zeros(1, np.float32)] * 6)
    assert [list(of_rank[0]) for of_rank in returned] == [[rank // 3, rank % 3, rank] for rank in range(6)]


@pytest.mark.parametrize("element_type", ["i2", "i4", "ui2", "ui4"])
def test_integers_of_less_than_a_byte_are_moved_and_reduced(element_type: str) -> None:
    type_ = f"tensor<12x8x{element_type}>"
    results = [
        f"%r{place} = stablehlo.reduce(%x init: %z) applies stablehlo.{name} across dimensions = [1] :"
        f" ({type_}, tensor<{element_type}>) -> tensor<12x{element_type}>"
        for place, name in enumerate(("add", "maximum", "minimum", "xor"))
    ]
    newline = "\n      "
    reduced = ", ".join([f"tensor<12x{element_type}>"] * 4)
    text = f"""
    sdy.mesh @m = <["x"=2]>
    func.func @main(%x: {type_} {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{"x"}}]>}}) -> ({type_}, {reduced}) {{
      %z = stablehlo.constant dense<0> : tensor<{element_type}>
      {newline.join(results)}
      %t = stablehlo.reverse %x, dims = [1] : {type_}
      return %t, %r0, %r1, %r2, %r3 : {type_}, {reduced}
    }}"""
    dtype = numpy_dtype(element_type)
    least, most = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
    numbers = np.random.default_rng(0).integers(least, most + 1, (12, 8))
    reverse, added, largest, smallest, different = ms.execute(ms.parse(text), [numbers.astype(dtype)])
    np.testing.assert_array_equal(reverse.astype(int), numbers[:, ::-1])
    wrapped = (numbers.sum(1) - least) % (most - least + 1) + least
    np.testing.assert_array_equal(added.astype(int), wrapped)
    np.testing.assert_array_equal(largest.astype(int), np.maximum(numbers.max(1), 0))
    np.testing.assert_array_equal(smallest.astype(int), np.minimum(numbers.min(1), 0))
    np.testing.assert_array_equal(different.astype(int), np.bitwise_xor.reduce(numbers, 1))
