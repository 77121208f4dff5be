# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of StableHLO ops that cut, join and exchange tensors, and of those that work on their last dimensions."""

from __future__ import annotations

import pytest
from rules.modules import ops, rule_of, spelled

from mlir_shard.rules import RuleCache

ADDER = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %sum = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %sum : tensor<f32>
})"""
GREATER = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %greater = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %greater : tensor<i1>
})"""


@pytest.mark.parametrize(
    ("signature", "op", "expected"),
    [
        (
            "%a: tensor<4x8xf32>",
            "%0 = stablehlo.reverse %a, dims = [1] : tensor<4x8xf32>",
            "([i, j])->([i, j]) {i=4, j=8} permutation=j",
        ),
        (
            "%a: tensor<4x2xi16>",
            "%0 = stablehlo.bitcast_convert %a : (tensor<4x2xi16>) -> tensor<4xi32>",
            "([i, j])->([i]) {i=4, j=2} need_replication=j",
        ),
        (
            "%a: tensor<4xi32>",
            "%0 = stablehlo.bitcast_convert %a : (tensor<4xi32>) -> tensor<4x4xi8>",
            "([i])->([i, j]) {i=4, j=4} need_replication=j",
        ),
        (
            "%a: tensor<8x16xf32>, %i: tensor<i32>",
            "%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [8, 2] : "
            "(tensor<8x16xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>",
            "([i, j], [], [])->([i, j]) {i=8, j=16} need_replication=j blocked_propagation=j",
        ),
        (
            "%a: tensor<2x6x5x5xf32>",
            "%0 = stablehlo.cholesky %a, lower = true : (tensor<2x6x5x5xf32>) -> tensor<2x6x5x5xf32>",
            "([i, j, k, l])->([i, j, k, l]) {i=2, j=6, k=5, l=5} need_replication=k,l",
        ),
        (
            "%a: tensor<3x4x8xcomplex<f32>>",
            "%0 = stablehlo.fft %a, type = FFT, length = [4, 8] : "
            "(tensor<3x4x8xcomplex<f32>>) -> tensor<3x4x8xcomplex<f32>>",
            "([i, j, k])->([i, j, k]) {i=3, j=4, k=8} need_replication=j,k",
        ),
        (
            "%a: tensor<3x8xf32>",
            "%0 = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<3x8xf32>) -> tensor<3x5xcomplex<f32>>",
            "([i, j])->([i, j]) {i=3, j=8} need_replication=j blocked_propagation=j",
        ),
        (
            "%a: tensor<4x6x8xf32>, %v: tensor<6xf32>",
            '%0 = "stablehlo.batch_norm_inference"(%a, %v, %v, %v, %v) {epsilon = 0.1 : f32, feature_index = 1 : i64} '
            ": (tensor<4x6x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6x8xf32>",
            "([i, j, k], [j], [j], [j], [j])->([i, j, k]) {i=4, j=6, k=8}",
        ),
        (
            "%a: tensor<2xui64>",
            "%0, %1 = stablehlo.rng_bit_generator %a, algorithm = DEFAULT : "
            "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)",
            "([i])->([i], [j, k]) {i=2, j=4, k=8} need_replication=i blocked_propagation=i",
        ),
        (
            "%a: tensor<4x8xf32>",
            f'%0 = "stablehlo.sort"(%a) {GREATER} {{dimension = 0 : i64}} : (tensor<4x8xf32>) -> tensor<4x8xf32>',
            "([i, j])->([i, j]) {i=4, j=8} need_replication=i",
        ),
        (
            # A negative dimension counts from the end, and no other dimension can take over the sharding.
            "%a: tensor<1x8xf32>",
            f'%0 = "stablehlo.sort"(%a) {GREATER} {{dimension = -1 : i64}} : (tensor<1x8xf32>) -> tensor<1x8xf32>',
            "([i, j])->([i, j]) {i=1, j=8} need_replication=j blocked_propagation=j",
        ),
    ],
)
def test_rules(signature: str, op: str, expected: str) -> None:
    assert rule_of(signature, op) == expected


@pytest.mark.parametrize(
    ("left", "transpose", "expected"),
    [
        ("true", "NO_TRANSPOSE", "([i, j, l], [i, j, k])->([i, l, k]) {i=2, j=5, k=3, l=5}"),
        ("true", "TRANSPOSE", "([i, l, j], [i, j, k])->([i, l, k]) {i=2, j=5, k=3, l=5}"),
        ("false", "NO_TRANSPOSE", "([i, l, k], [i, j, k])->([i, j, l]) {i=2, j=3, k=5, l=5}"),
        ("false", "ADJOINT", "([i, k, l], [i, j, k])->([i, j, l]) {i=2, j=3, k=5, l=5}"),
    ],
)
def test_triangular_solve(left: str, transpose: str, expected: str) -> None:
    a, b = "tensor<2x5x5xf32>", "tensor<2x5x3xf32>" if left == "true" else "tensor<2x3x5xf32>"
    op = (
        f'%0 = "stablehlo.triangular_solve"(%a, %b) {{left_side = {left}, lower = true, unit_diagonal = false, '
        f"transpose_a = #stablehlo<transpose {transpose}>}} : ({a}, {b}) -> {b}"
    )
    assert rule_of(f"%a: {a}, %b: {b}", op) == f"{expected} need_replication=j,k,l"


GROUP = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


@pytest.mark.parametrize(
    ("op", "after", "expected"),
    [
        (
            f"all_gather {{all_gather_dim = 0 : i64, {GROUP}}}",
            "8x8",
            "([j, i])->([k, i]) {i=8, j=4, k=8} need_replication=j,k",
        ),
        (
            f"reduce_scatter {{scatter_dimension = 1 : i64, {GROUP}}}",
            "4x4",
            "([i, j])->([i, k]) {i=4, j=8, k=4} need_replication=j,k",
        ),
        (
            f"all_to_all {{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {GROUP}}}",
            "8x4",
            "([k, i])->([l, j]) {i=8, j=4, k=4, l=8} need_replication=i,j,k,l",
        ),
        (f"all_reduce {{{GROUP}}}", "4x8", "([i, j])->([i, j]) {i=4, j=8}"),
        (f"collective_broadcast {{{GROUP}}}", "4x8", "([i, j])->([i, j]) {i=4, j=8}"),
    ],
)
def test_collectives(op: str, after: str, expected: str) -> None:
    name, _, attributes = op.partition(" ")
    region = ADDER if name in ("all_reduce", "reduce_scatter") else ""
    text = f'%0 = "stablehlo.{name}"(%a) {region} {attributes} : (tensor<4x8xf32>) -> tensor<{after}xf32>'
    assert rule_of("%a: tensor<4x8xf32>", text) == expected


PAD = (
    "%a: tensor<6x8xf32>, %z: tensor<f32>",
    "%0 = stablehlo.pad %a, %z, low = [1, 1], high = [-1, 0], interior = [0, 0] : "
    "(tensor<6x8xf32>, tensor<f32>) -> tensor<6x9xf32>",
    "([i, j], [])->([i, j]) {i=6, j=8} permutation=j",
)
SLICE = (
    "%a: tensor<6x8xf32>",
    "%0 = stablehlo.slice %a [0:6, 2:8:3] : (tensor<6x8xf32>) -> tensor<6x2xf32>",
    "([i, j])->([i, j]) {i=6, j=8} permutation=j",
)


@pytest.mark.parametrize(("signature", "op", "expected"), [PAD, SLICE])
def test_shifts_are_blocked_if_conservative(signature: str, op: str, expected: str) -> None:
    assert rule_of(signature, op) == expected
    assert rule_of(signature, op, conservative=True) == f"{expected} blocked_propagation=j"


def test_an_update_that_goes_where_is_known_may_be_sharded() -> None:
    update = "(tensor<8x6xf32>, tensor<2x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>"
    *_, known, unknown, _ = ops(f"""(%a: tensor<8x6xf32>, %u: tensor<2x6xf32>, %i: tensor<i32>) {{
        %c = stablehlo.constant dense<1> : tensor<i32>
        %0 = stablehlo.dynamic_update_slice %a, %u, %c, %c : {update}
        %1 = stablehlo.dynamic_update_slice %a, %u, %c, %i : {update}
        return
      }}""")
    rule = "([i, k], [j, k], [], [])->([i, k]) {i=8, j=2, k=6}"
    cache = RuleCache()
    assert [spelled(known), spelled(unknown)] == [rule, f"{rule} need_replication=j"]
    assert [getattr(cache.rule_for(op), "need_replication_factors", None) for op in (known, unknown)] == [(), (1,)]


def test_joined_slices_are_permuted() -> None:
    joined = "(tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>"
    *_, slices, tensors, mixed, one_tensor, whole, _ = ops(f"""(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) {{
        %s = stablehlo.slice %a [0:2, 0:4] : (tensor<2x4xf32>) -> tensor<2x4xf32>
        %t = stablehlo.slice %b [0:2, 0:4] : (tensor<2x4xf32>) -> tensor<2x4xf32>
        %0 = stablehlo.concatenate %s, %t, dim = 0 : {joined}
        %1 = stablehlo.concatenate %a, %b, dim = 0 : {joined}
        %2 = stablehlo.concatenate %s, %b, dim = 0 : {joined}
        %3 = stablehlo.concatenate %s, %a, dim = 0 : {joined}
        %4 = stablehlo.concatenate %a, %a, dim = 0 : {joined}
        return
      }}""")
    rule = "([i, j], [i, j])->([i, j]) {i=4, j=4}"
    cache = RuleCache()
    for op, type_ in (
        (slices, "permutation"),
        (tensors, "need_replication"),
        (mixed, "need_replication"),
        (one_tensor, "permutation"),
        (whole, "need_replication"),
    ):
        assert spelled(op) == f"{rule} {type_}=i"
        assert getattr(cache.rule_for(op), f"{type_}_factors") == (0,)


def test_a_conservative_concatenation_leaves_out_what_it_joins() -> None:
    op = "%0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>"
    expected = "([j, i], [k, i])->([l, i]) {i=4, j=1, k=1, l=1}"
    assert rule_of("%a: tensor<2x4xf32>", op, conservative=True) == expected
