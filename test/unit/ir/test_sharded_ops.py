# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ShardedOps.settle` settles results that are resharded after their operation, for a user or at the return."""

from __future__ import annotations

from array import array

import pytest

import mlir_shard as ms
from mlir_shard._native import ShardedOps
from mlir_shard.ir.arrays import ModuleArrays

# The operations have numbers 0 to 3.
PROGRAM = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  %2 = math.sin %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}"""


def _settled(resharded: dict[int, list[bool]], returned: int = 1) -> tuple[list[int], list[int], list[int]]:
    """Runs `settle` with all values in sharding 1; returns the operations passed to `where_resharded`, those passed to
    `settle`, and those whose results changed."""
    module = ms.parse(PROGRAM)
    arrays = ModuleArrays(module.body.operations[0])
    ops = arrays.sharded_ops([0, 1, 2, 3], {})
    numbers = array("i", [1] * arrays.value_count)
    asked: list[int] = []
    settled: list[int] = []

    def where_resharded(op: int) -> list[bool]:
        asked.append(op)
        return resharded.get(op, [])

    def settle(op: int) -> None:
        settled.append(op)
        numbers[arrays.results(op)[0]] = 2

    uses = [ShardedOps.Use.WEIGHED, ShardedOps.Use.WEIGHED, ShardedOps.Use.RETURNS]
    changed = ops.settle([3, 2, 1, 0], numbers, uses, [returned], where_resharded, settle)
    return asked, settled, changed


def test_nothing_is_settled_where_nothing_is_resharded() -> None:
    asked, settled, changed = _settled({})

    # The two exponentials are of one equivalence class.
    assert asked == [2, 1]
    assert settled == changed == []


@pytest.mark.parametrize(
    ("resharded", "returned", "expected"),
    [
        ({2: [False, True]}, 1, [2]),
        ({2: [True, False]}, 1, [1]),
        ({}, 3, [2]),
        ({}, 0, []),
    ],
    ids=["behind its operation", "for a user", "as it is returned", "returned without a sharding"],
)
def test_a_result_is_settled_that_is_resharded(
    resharded: dict[int, list[bool]], returned: int, expected: list[int]
) -> None:
    _, settled, changed = _settled(resharded, returned)

    assert settled == changed == expected
