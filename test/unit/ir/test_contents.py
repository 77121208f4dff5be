# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the contents of operations that the native walk reports."""

from __future__ import annotations

import pytest

import mlir_shard
from mlir_shard.ir.editing import contents, contents_of_all, ops_below

FULL = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x?xf32> {
  %0 = stablehlo.tanh %a {test.mark} : tensor<8x?xf32>
  return %0 : tensor<8x?xf32>
}
"""
EMPTY_RESULT = "func.func @main() { %0 = stablehlo.constant dense<> : tensor<2x0xf32>\nreturn }"
EMPTY_ARGUMENT = "func.func @main(%a: tensor<0xf32>) { return }"
EMPTY_INSIDE = """
func.func @main(%n: index, %a: tensor<8xf32>) {
  scf.for %i = %n to %n step %n {
    %0 = tensor.empty() : tensor<3x0xi32>
  }
  return
}
"""


def test_names_are_those_of_operations_and_of_attributes_in_signatures() -> None:
    held = contents(mlir_shard.parse(FULL, mlir_shard.create_context()).operation)
    assert held.operations == {"builtin.module", "sdy.mesh", "func.func", "stablehlo.tanh", "func.return"}
    assert {"sdy.sharding", "test.mark"} <= held.attributes
    assert not held.has_branches


@pytest.mark.parametrize(
    ("text", "is_empty"),
    [(FULL, False), (EMPTY_RESULT, True), (EMPTY_ARGUMENT, True), (EMPTY_INSIDE, True)],
    ids=["full", "result", "argument", "inside"],
)
def test_tensors_without_elements_are_found(text: str, is_empty: bool) -> None:
    module = mlir_shard.parse(text, mlir_shard.create_context())
    assert contents(module.operation).has_empty_tensors is is_empty


def test_branches_are_regions_of_several_blocks() -> None:
    text = "func.func @main(%c: i1) { cf.cond_br %c, ^a, ^b\n^a:\nreturn\n^b:\nreturn }"
    assert contents(mlir_shard.parse(text, mlir_shard.create_context()).operation).has_branches


def test_several_operations_hold_what_each_holds() -> None:
    module = mlir_shard.parse(EMPTY_RESULT, mlir_shard.create_context()).operation
    found = [op for op in ops_below(module) if op.name in ("stablehlo.constant", "func.return")]
    together = contents_of_all(found)
    assert together.operations == {"stablehlo.constant", "func.return"}
    assert together.has_empty_tensors
    assert together == contents(found[0]) | contents(found[1])
    assert contents_of_all([]).operations == frozenset()


def test_an_operation_alone_holds_nothing_of_what_is_inside() -> None:
    module = mlir_shard.parse(EMPTY_RESULT, mlir_shard.create_context()).operation
    alone = contents_of_all([module], alone=True)
    assert alone.operations == {"builtin.module"}
    assert (alone.has_empty_tensors, contents(module).has_empty_tensors) == (False, True)
