# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the signatures of single operations, which are the keys of cached rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import mlir_shard
from mlir_shard import _native
from mlir_shard.asm.module import host_library
from mlir_shard.ir.editing import ops_below

OPS = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %a: tensor<8x4xf32>, %b: tensor<6x3xf32>, %c: tensor<8x8xf32>, %d: tensor<?x4xf32>, %e: tensor<*xf32>,
    %m: memref<2x3xf32>, %n: memref<2x?xf32>) {
  %0 = stablehlo.negate %a : tensor<8x4xf32>
  %1 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
  %2 = stablehlo.negate %a {other} : tensor<8x4xf32>
  %3 = stablehlo.negate %b : tensor<6x3xf32>
  %4 = stablehlo.negate %c : tensor<8x8xf32>
  %5 = stablehlo.negate %d : tensor<?x4xf32>
  %6 = "test.op"(%e) : (tensor<*xf32>) -> f32
  %7 = "test.op"(%m, %a) : (memref<2x3xf32>, tensor<8x4xf32>) -> tensor<5xf32>
  %8 = "test.op"(%n, %a) : (memref<2x?xf32>, tensor<8x4xf32>) -> tensor<5xf32>
  return
}
"""


@pytest.fixture(scope="module")
def ops() -> Iterator[list[Any]]:
    context = mlir_shard.create_context()
    context.allow_unregistered_dialects = True
    module = mlir_shard.parse(OPS, context)
    yield [op for op in ops_below(module) if op.name in ("stablehlo.negate", "test.op")]


@pytest.fixture
def signatures() -> _native.OpSignatures:
    return _native.OpSignatures(host_library(), ["sdy.sharding"])


def test_operations_that_agree_but_in_ignored_attributes_have_one_signature(
    ops: list[Any], signatures: _native.OpSignatures
) -> None:
    numbers = [signatures.of(op._CAPIPtr) for op in ops]
    assert numbers[0] == numbers[1]
    assert len(set(numbers)) == len(ops) - 1
    assert [signatures.of(op._CAPIPtr) for op in ops] == numbers


def test_sizes_count_in_part_only(ops: list[Any], signatures: _native.OpSignatures) -> None:
    found = [signatures.of_any_sizes(op._CAPIPtr) for op in ops[:5]]
    numbers, sizes = zip(*(one for one in found if one is not None), strict=True)
    # The third operation has another attribute, and the last one has equal sizes.
    assert numbers[0] == numbers[1] == numbers[3]
    assert len(set(numbers)) == 3
    assert sizes == ([8, 4, 8, 4], [8, 4, 8, 4], [8, 4, 8, 4], [6, 3, 6, 3], [8, 8, 8, 8])


def test_operations_without_static_shapes_have_no_sizes(ops: list[Any], signatures: _native.OpSignatures) -> None:
    found = [signatures.of_any_sizes(op._CAPIPtr) for op in ops[5:]]
    assert [one and one[1] for one in found] == [None, None, [8, 4, 5], None]
