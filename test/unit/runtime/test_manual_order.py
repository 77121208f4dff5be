# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A manual computation on devices in an order of its own runs on the blocks that these have by that order."""

from __future__ import annotations

import numpy as np
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


@needs_jax
def test_the_body_sees_the_numbers_of_its_devices() -> None:
    (got,) = execute(mlir_shard.parse(PROGRAM, mlir_shard.create_context()), [np.zeros(8, np.uint32)], engine="pjrt")
    np.testing.assert_array_equal(got, [1, 1, 1, 1, 0, 0, 0, 0])
