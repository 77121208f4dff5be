# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of values that are uniform across the devices of each group of a collective."""

from __future__ import annotations

from typing import Any

import pytest

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.transforms.communication.device_uniformity import KnownUniform, UniformValues

PROGRAM = """
shard.grid @grid(shape = 2x2)
func.func @main(%own: tensor<4xf32>, %block: tensor<2xf32>) {
  %constant = arith.constant {name = "constant"} dense<1.0> : tensor<4xf32>
  %gathered = shard.all_gather %block on @grid grid_axes = [0] gather_axis = 0 {name = "gathered"}
      : tensor<2xf32> -> tensor<4xf32>
  %reduced = shard.all_reduce %own on @grid grid_axes = [0] {name = "reduced"} : tensor<4xf32> -> tensor<4xf32>
  %across = shard.all_reduce %own on @grid grid_axes = [1] {name = "across"} : tensor<4xf32> -> tensor<4xf32>
  %sum = arith.addf %gathered, %reduced {name = "sum"} : tensor<4xf32>
  %scaled = arith.mulf %sum, %constant {name = "scaled"} : tensor<4xf32>
  %with_own = arith.addf %sum, %own {name = "with_own"} : tensor<4xf32>
  %mixed = arith.addf %sum, %across {name = "mixed"} : tensor<4xf32>
  %index = shard.process_linear_index on @grid {name = "index"} : index
  return
}
"""
UNIFORM_ALONG_0 = {"constant", "gathered", "reduced", "sum", "scaled"}
UNIFORM_ALONG_1 = {"constant", "across"}


@pytest.fixture
def module() -> Any:
    # The fixture keeps the module alive, and with it the operations.
    return mlir_shard.parse(PROGRAM, mlir_shard.create_context())


def named(module: Any) -> dict[str, ir.Operation]:
    main = operations_named(module.operation, "func.func")[0]
    ops = [op.operation for op in main.regions[0].blocks[0].operations]
    return {op.attributes["name"].value: op for op in ops if "name" in op.attributes}


def same(of: UniformValues, ops: dict[str, ir.Operation]) -> set[str]:
    return {name for name, op in ops.items() if of.has(op.results[0])}


def test_what_is_gathered_or_reduced_along_the_same_axes_and_what_is_computed_of_it(module: Any) -> None:
    ops = named(module)
    assert same(UniformValues(ops["gathered"]), ops) == UNIFORM_ALONG_0
    assert same(UniformValues(ops["across"]), ops) == UNIFORM_ALONG_1


def test_known_of_all_collectives_is_what_is_known_of_each(module: Any) -> None:
    ops = named(module)
    known = KnownUniform()
    for _ in range(2):
        assert same(known.of(ops["gathered"]), ops) == UNIFORM_ALONG_0
        assert same(known.of(ops["across"]), ops) == UNIFORM_ALONG_1
        assert same(known.of(ops["reduced"]), ops) == UNIFORM_ALONG_0


def test_arguments_are_not_known_to_be(module: Any) -> None:
    ops = named(module)
    assert not UniformValues(ops["gathered"]).has(ops["reduced"].operands[0])


def test_what_is_forgotten_is_looked_at_again(module: Any) -> None:
    ops = named(module)
    known = KnownUniform()
    assert known.of(ops["gathered"]).has(ops["sum"].results[0])
    ops["sum"].operands[1] = ops["reduced"].operands[0]
    assert known.of(ops["gathered"]).has(ops["sum"].results[0]), "nobody has said that it changes"
    known.forget([ops["sum"].results[0]])
    assert not known.of(ops["gathered"]).has(ops["sum"].results[0])
    assert known.of(ops["gathered"]).has(ops["reduced"].results[0])


def test_what_regions_take_from_around_counts() -> None:
    text = """
    shard.grid @grid(shape = 2)
    func.func @main(%own: tensor<4xf32>, %element: f32) {
      %all = shard.all_reduce %own on @grid grid_axes = [0] {name = "all"} : tensor<4xf32> -> tensor<4xf32>
      %one = arith.constant 1.0 : f32
      %same = linalg.map ins(%all : tensor<4xf32>) outs(%all : tensor<4xf32>) (%x: f32, %init: f32) {
        %0 = arith.addf %x, %one : f32
        linalg.yield %0 : f32
      }
      %other = linalg.map ins(%all : tensor<4xf32>) outs(%all : tensor<4xf32>) (%x: f32, %init: f32) {
        %0 = arith.addf %x, %element : f32
        linalg.yield %0 : f32
      }
      return
    }
    """
    module = mlir_shard.parse(text, mlir_shard.create_context())
    known = KnownUniform().of(named(module)["all"])
    alike, other = operations_named(module.operation, "linalg.map")
    assert known.has_captured(alike)
    assert known.has(alike.results[0])
    assert not known.has_captured(other)
    assert not known.has(other.results[0])
