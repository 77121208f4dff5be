# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for tests of verification, and the results of the host's and of the incremental verification."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from mlir_shard.dialects import verification
from mlir_shard.dialects.verified import Verified
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below
from mlir_shard.ir.operation_list import capsules_of

TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["z"=4]>
func.func private @callee(%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x4xf32> {
  %0 = stablehlo.tanh %a : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>, %n: tensor<i32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %c = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = call @callee(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = call @callee(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"x"}, {"y"}]> : tensor<4x8xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %5:2 = stablehlo.while(%i = %n, %v = %4) : tensor<i32>, tensor<4xf32>
    cond {
      %6 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %7 = stablehlo.add %i, %c : tensor<i32>
      %8 = stablehlo.multiply %v, %4 : tensor<4xf32>
      stablehlo.return %7, %8 : tensor<i32>, tensor<4xf32>
    }
  %edge = sdy.data_flow_edge %5#0 : tensor<i32>
  %9 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
      manual_axes={"x"} (%arg: tensor<2x8xf32>) {
    %10 = stablehlo.exponential %arg : tensor<2x8xf32>
    sdy.return %10 : tensor<2x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4x8xf32>
  %11 = linalg.matmul ins(%1, %9 : tensor<4x4xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %12 = stablehlo.add %11, %9 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : tensor<4x8xf32>
  return %12, %5#1 : tensor<4x8xf32>, tensor<4xf32>
}
"""


def by_host(module: Any) -> bool:
    """Returns whether the host's verification and that of all sdy attributes succeed."""
    with contextlib.suppress(ir.MLIRError):
        return bool(module.operation.verify()) and verification.verify(module.operation)
    return False


def known(verified: Verified, module: Any) -> bool:
    """Returns whether the incremental verification of a module succeeds, after that of its valid state."""
    with contextlib.suppress(ir.MLIRError):
        return verified.verify(module.operation)
    return False


@dataclass
class Changed:
    ops: list[Any] = field(default_factory=list)
    moved: list[Any] = field(default_factory=list)
    attributed: list[Any] = field(default_factory=list)


def known_changed(verified: Verified, module: Any, changed: Changed) -> bool:
    """Returns whether the verification of the known changes succeeds, after the verification of a valid module."""
    with contextlib.suppress(ir.MLIRError):
        return verified.verify_changed(
            module.operation, capsules_of(changed.ops), capsules_of(changed.moved), capsules_of(changed.attributed)
        )
    return False


def ops_named(module: Any, name: str) -> list[Any]:
    return [op for op in ops_below(module) if op.name == name]


class ByParts:
    """A module that raises an error if the host verifies it as one operation."""

    def __init__(self, module: Any) -> None:
        self._CAPIPtr = module.operation._CAPIPtr

    def verify(self) -> bool:
        raise AssertionError("the host verifies the whole")
