# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of an array attribute are equal to those of an iteration over it."""

from __future__ import annotations

import pytest

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("array<i64>", []),
        ("array<i64: 2, 0, -1>", [2, 0, -1]),
        ("array<i32: 7>", [7]),
        ("array<i16: 0, 1>", [0, 1]),
        ("array<i1: true, false>", [True, False]),
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>", [1, 2, 3, 4]),
        ("dense<5> : tensor<3xi64>", [5, 5, 5]),
    ],
)
def test_numbers(text: str, expected: list[int]) -> None:
    with mlir_shard.create_context():
        assert elements(ir.Attribute.parse(text)) == expected


def test_named_attributes_of_a_dictionary() -> None:
    with mlir_shard.create_context():
        dictionary = ir.Attribute.parse('{b = 1 : i32, a = "x"}')
        assert [(one.name, str(one.attr)) for one in elements(dictionary)] == [("a", '"x"'), ("b", "1 : i32")]
