# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the rules of StableHLO ops over windows: convolutions, windowed reductions and their gradient."""

from __future__ import annotations

import pytest
from rules.modules import ops, rule_of

from mlir_shard.rules import rule_for
from mlir_shard.rules.windows import Window, windows_of

ADDER = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %sum = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %sum : tensor<f32>
})"""


@pytest.mark.parametrize(
    ("attributes", "result", "expected", "conservative"),
    [
        (
            "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>",
            "4x4",
            "([i, j], [])->([i, j]) {i=4, j=4} permutation=j",
            "([i, j], [])->([i, j]) {i=4, j=4} permutation=j blocked_propagation=j",
        ),
        (
            # Windows of one element with a stride, and with one element of padding.
            "window_dimensions = array<i64: 1, 1>, window_strides = array<i64: 2, 1>, "
            "padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>",
            "2x9",
            "([i, j], [])->([i, j]) {i=2, j=9} permutation=i,j",
            "([i, j], [])->([i, j]) {i=2, j=9} permutation=i,j blocked_propagation=i,j",
        ),
        (
            "window_dimensions = array<i64: 1, 1>",
            "4x8",
            "([i, j], [])->([i, j]) {i=4, j=8}",
            "([i, j], [])->([i, j]) {i=4, j=8}",
        ),
    ],
)
def test_reduce_window(attributes: str, result: str, expected: str, conservative: str) -> None:
    signature = "%a: tensor<4x8xf32>, %z: tensor<f32>"
    op = (
        f'%0 = "stablehlo.reduce_window"(%a, %z) {ADDER} {{{attributes}}} : '
        f"(tensor<4x8xf32>, tensor<f32>) -> tensor<{result}xf32>"
    )
    assert rule_of(signature, op) == expected
    assert rule_of(signature, op, conservative=True) == conservative


def test_select_and_scatter() -> None:
    signature = "%a: tensor<4x8xf32>, %s: tensor<4x2xf32>, %z: tensor<f32>"
    op = f"""%0 = "stablehlo.select_and_scatter"(%a, %s, %z) ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %greater = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %greater : tensor<i1>
    }}, {ADDER[1:]} {{window_dimensions = array<i64: 1, 4>, window_strides = array<i64: 1, 4>}} :
      (tensor<4x8xf32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x8xf32>"""
    expected = "([i, k], [i, j], [])->([i, k]) {i=4, j=2, k=8} need_replication=j permutation=k"
    assert rule_of(signature, op) == expected
    assert rule_of(signature, op, conservative=True) == f"{expected} blocked_propagation=j,k"


def convolution(
    lhs: str, kernel: str, result: str, *, batch_groups: int = 1, feature_groups: int = 1
) -> tuple[str, str]:
    """Returns the signature and op of a convolution along one spatial dimension, without padding and strides."""
    types = [f"tensor<{shape}xf32>" for shape in (lhs, kernel, result)]
    return f"%a: {types[0]}, %k: {types[1]}", (
        "%0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
        f"{{batch_group_count = {batch_groups} : i64, feature_group_count = {feature_groups} : i64}} : "
        f"({types[0]}, {types[1]}) -> {types[2]}"
    )


@pytest.mark.parametrize(
    ("lhs", "kernel", "result", "groups", "expected"),
    [
        # With more windows than elements per window, the spatial dimension shares a factor with the result.
        (
            "2x14x6",
            "3x6x4",
            "2x12x4",
            (1, 1),
            "([i, j, k], [m, k, l])->([i, j, l]) {i=2, j=12, k=6, l=4, m=1} reduction=k permutation=j",
        ),
        # With fewer windows than elements per window, the spatial dimension shares a factor with the kernel.
        (
            "2x14x6",
            "13x6x4",
            "2x2x4",
            (1, 1),
            "([i, j, k], [j, k, l])->([i, m, l]) {i=2, j=13, k=6, l=4, m=1} reduction=j,k",
        ),
        # Factors of the groups, and of the elements within a group.
        (
            "6x1x5",
            "1x5x8",
            "3x1x8",
            (2, 1),
            "([ij, m, k], [n, k, il])->([j, o, il]) {i=2, j=3, k=5, l=4, m=1, n=1, o=1} reduction=k",
        ),
        (
            "3x1x6",
            "1x3x8",
            "3x1x8",
            (1, 2),
            "([i, m, jk], [n, k, jl])->([i, o, jl]) {i=3, j=2, k=3, l=4, m=1, n=1, o=1} reduction=k",
        ),
        # Depthwise: groups of one feature each.
        (
            "3x1x6",
            "1x1x6",
            "3x1x6",
            (1, 6),
            "([i, l, j], [m, k, j])->([i, n, j]) {i=3, j=6, k=1, l=1, m=1, n=1} reduction=k",
        ),
    ],
)
def test_convolution(lhs: str, kernel: str, result: str, groups: tuple[int, int], expected: str) -> None:
    assert rule_of(*convolution(lhs, kernel, result, batch_groups=groups[0], feature_groups=groups[1])) == expected


def test_a_spatial_dimension_along_windows_and_inside_them() -> None:
    expected = "([i, jk, l], [k, l, m])->([i, j, m]) {i=2, j=4, k=2, l=6, m=4} reduction=k,l permutation=j"
    signature, op = convolution("2x8x6", "2x6x4", "2x4x4")
    assert rule_of(signature, op.replace("window = {}", "window = {stride = [2]}")) == expected


def test_a_conservative_convolution_leaves_out_what_windows_overlap_along() -> None:
    expected = "([i, l, j], [m, j, k])->([i, n, k]) {i=2, j=6, k=4, l=1, m=1, n=1} reduction=j"
    assert rule_of(*convolution("2x14x6", "3x6x4", "2x12x4"), conservative=True) == expected


def test_operands_of_a_concatenation_are_windows_of_its_result() -> None:
    *_, op, _ = ops("""(%a: tensor<2x7xf32>) {
        %0 = stablehlo.slice %a [0:2, 3:7] : (tensor<2x7xf32>) -> tensor<2x4xf32>
        %1 = stablehlo.slice %a [0:2, 0:3] : (tensor<2x7xf32>) -> tensor<2x3xf32>
        %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<2x7xf32>
        return
    }""")
    rule = rule_for(op)
    assert rule is not None
    (factor,) = rule.permutation_factors
    assert windows_of(op, rule) == (
        Window(0, 1, factor, 1, 1, 0, is_part=True),
        Window(1, 1, factor, 1, 1, -4, is_part=True),
    )
