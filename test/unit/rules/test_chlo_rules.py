# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the rules of CHLO."""

from __future__ import annotations

import pytest
from rules.modules import rule_of


@pytest.mark.parametrize(
    ("signature", "op", "expected"),
    [
        (
            "%a: tensor<4x8xf32>",
            "%0 = chlo.erf %a : tensor<4x8xf32> -> tensor<4x8xf32>",
            "([i, j])->([i, j]) {i=4, j=8}",
        ),
        (
            "%a: tensor<4x8xf32>",
            "%0, %1 = chlo.top_k(%a, k = 3) : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)",
            "([i, j])->([i, j], [i, j]) {i=4, j=8} need_replication=j blocked_propagation=j",
        ),
        (
            # All elements are taken, in another order.
            "%a: tensor<4x8xf32>",
            "%0, %1 = chlo.top_k(%a, k = 8) : tensor<4x8xf32> -> (tensor<4x8xf32>, tensor<4x8xi32>)",
            "([i, j])->([i, j], [i, j]) {i=4, j=8} need_replication=j blocked_propagation=j",
        ),
        (
            # Shapes are aligned at the last dimension, and broadcast along the first.
            "%a: tensor<1x8xf32>, %b: tensor<4x8xf32>",
            "%0 = chlo.broadcast_add %a, %b : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
            "([k, j], [i, j])->([i, j]) {i=4, j=8, k=1}",
        ),
        (
            "%a: tensor<8xf32>, %b: tensor<4x8xf32>",
            "%0 = chlo.broadcast_multiply %a, %b : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
            "([j], [i, j])->([i, j]) {i=4, j=8}",
        ),
        (
            "%a: tensor<4xf32>, %b: tensor<4x8xf32>",
            "%0 = chlo.broadcast_maximum %a, %b {broadcast_dimensions = array<i64: 0>} : "
            "(tensor<4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
            "([i], [i, j])->([i, j]) {i=4, j=8}",
        ),
        (
            "%p: tensor<i1>, %a: tensor<4x1xf32>, %b: tensor<8xf32>",
            "%0 = chlo.broadcast_select %p, %a, %b : (tensor<i1>, tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>",
            "([], [i, k], [j])->([i, j]) {i=4, j=8, k=1}",
        ),
    ],
)
def test_rules(signature: str, op: str, expected: str) -> None:
    assert rule_of(signature, op) == expected
