# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A manual computation on devices in an order of its own runs on the shards that the devices have in that order."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.local_program import needs_jax

import mlir_shard
from mlir_shard.runtime import execute

PROGRAM = """
sdy.mesh @m = <["a"=2]>
sdy.mesh @reversed = <["a"=2], device_ids=[1, 0]>
func.func @main(%x: tensor<8xui32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>})
    -> (tensor<8xui32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@reversed, [{"a"}]>] out_shardings=[<@reversed, [{"a"}]>]
      manual_axes={"a"} (%y: tensor<4xui32>) {
    %1 = stablehlo.partition_id : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<4xui32>
    %3 = stablehlo.add %y, %2 : tensor<4xui32>
    sdy.return %3 : tensor<4xui32>
  } : (tensor<8xui32>) -> tensor<8xui32>
  return %0 : tensor<8xui32>
}
"""


@pytest.mark.parametrize("engine", ["mpi", pytest.param("pjrt", marks=needs_jax)])
def test_the_body_sees_the_numbers_of_its_devices(engine: str) -> None:
    (got,) = execute(mlir_shard.parse(PROGRAM, mlir_shard.create_context()), [np.zeros(8, np.uint32)], engine=engine)
    np.testing.assert_array_equal(got, [1, 1, 1, 1, 0, 0, 0, 0])


SENT = """
sdy.mesh @m = <["a"=4]>
sdy.mesh @permuted = <["a"=4], device_ids=[3, 1, 0, 2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@permuted, [{"a"}]>] out_shardings=[<@permuted, [{"a"}]>]
      manual_axes={"a"} (%y: tensor<1xf32>) {
    %1 = "stablehlo.collective_permute"(%y) <{source_target_pairs = dense<[[3, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<1xf32>) -> tensor<1xf32>
    sdy.return %1 : tensor<1xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("engine", ["mpi", pytest.param("pjrt", marks=needs_jax)])
def test_collectives_are_between_the_devices_that_they_name(engine: str) -> None:
    # Device 3 has the first shard, device 1 the second.
    given = np.array([10, 20, 30, 40], np.float32)
    (got,) = execute(mlir_shard.parse(SENT, mlir_shard.create_context()), [given], engine=engine)
    np.testing.assert_array_equal(got, [0, 10, 0, 0])
