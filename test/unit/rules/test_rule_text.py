# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of sharding rules as text."""

from __future__ import annotations

import pytest
from rules.modules import ops

from mlir_shard.rules import RuleError, RuleOptions, RuleTextError, parse_rule, rule_from_text
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.verify import check_op_sharding_rule

Shapes = list[tuple[int, ...]]


def rule_of(text: str, operands: Shapes, results: Shapes, **sizes: int) -> OpShardingRule:
    rule = parse_rule(text).rule(operands, results, sizes)
    assert check_op_sharding_rule(rule, operands, results) is None
    return rule


def test_a_factor_in_no_result_is_a_reduction() -> None:
    rule = rule_of("b i k, b k j -> b i j", [(2, 4, 8), (2, 8, 16)], [(2, 4, 16)])
    assert str(rule) == "([i, j, l], [i, l, k])->([i, j, k]) {i=2, j=4, k=16, l=8}"
    assert rule.reduction_factors == (3,)


def test_marks() -> None:
    rule = rule_of(
        "n c h -> n h need_replication={c} permutation={h} blocked_propagation={n, h}", [(2, 4, 8)], [(2, 8)]
    )
    assert str(rule) == "([i, k, j])->([i, j]) {i=2, j=8, k=4}"
    assert rule.reduction_factors == ()
    assert rule.need_replication_factors == (2,)
    assert rule.permutation_factors == (1,)
    assert rule.blocked_propagation_factors == (0, 1)


@pytest.mark.parametrize(
    ("text", "operands", "results", "sizes", "expected"),
    [
        ("b s (h d) -> b h s d", [(2, 4, 32)], [(2, 8, 4, 4)], {}, "([i, k, jl])->([i, j, k, l]) {i=2, j=8, k=4, l=4}"),
        ("(h d) -> (d h)", [(32,)], [(32,)], {"h": 8}, "([ji])->([ij]) {i=4, j=8}"),
        # A factor of size 1 is omitted from merged dimensions, and from the rule if no dimension consists of it alone.
        ("(h d) -> h d", [(8,)], [(8, 1)], {}, "([i])->([i, j]) {i=8, j=1}"),
        (", i 1 -> i _", [(), (4, 1)], [(4, 3)], {}, "([], [i, j])->([i, k]) {i=4, j=1, k=3}"),
        (
            "... i, ... -> ... i",
            [(2, 4, 8), (2, 4)],
            [(2, 4, 8)],
            {},
            "([i, j, k], [i, j])->([i, j, k]) {i=2, j=4, k=8}",
        ),
        ("... i -> i", [(8,)], [(8,)], {}, "([i])->([i]) {i=8}"),
        (" -> ", [()], [()], {}, "([])->([]) {}"),
    ],
)
def test_dimensions(text: str, operands: Shapes, results: Shapes, sizes: dict[str, int], expected: str) -> None:
    assert str(rule_of(text, operands, results, **sizes)) == expected


def test_a_whole_dimension_needs_replication() -> None:
    assert rule_of("i _ -> i _", [(4, 2)], [(4, 3)]).need_replication_factors == (1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i k, k j", r"expected one '->' before the results, got 0"),
        ("i -> i -> i", r"expected one '->' before the results, got 2"),
        ("i+ -> i", r"'\+' is not a dimension"),
        ("i (j -> i j", r"'\(j' is not a dimension"),
        ("2x -> i", r"'2x' is not a dimension"),
        ("i i -> i", r"factor 'i' occurs twice in operand 0"),
        ("i -> (i j) j", r"factor 'j' occurs twice in result 0"),
        ("i ... -> i", r"'...' must be the first dimension of operand 0"),
        ("i -> i reduced={i}", r"unknown factor type 'reduced': expected one of reduction, need_replication"),
        ("i -> i reduction={k}", r"reduction factor 'k' does not occur in any tensor"),
        ("i -> i reduction={i}", r"reduction factor 'i' must not occur in a result"),
        ("i -> i permutation={i} need_replication={i}", r"'i' is both a permutation and a need_replication factor"),
    ],
)
def test_text_that_is_no_rule(text: str, message: str) -> None:
    with pytest.raises(RuleTextError, match=message):
        parse_rule(text)


@pytest.mark.parametrize(
    ("text", "operands", "results", "message"),
    [
        ("i, i -> i", [(4,)], [(4,)], r"has 2 operands, but 1 are given"),
        ("i -> i, i", [(4,)], [(4,)], r"has 2 results, but 1 are given"),
        ("i j -> i", [(4,)], [(4,)], r"has 2 dimensions for operand 0, but its shape is \[4\]"),
        ("... i j -> i", [(4,)], [(4,)], r"has at least 2 dimensions for operand 0, but its shape is \[4\]"),
        ("... i -> ...", [(2, 4)], [(2, 4)], r"'...' of '.*' stands for 2 dimensions in result 0, but for 1 before it"),
        ("i k, k j -> i j", [(4, 8), (6, 2)], [(4, 2)], r"dim 0 of operand 1 has size 6, but '.*' requires k=8"),
        ("i j, (i j) -> j", [(4, 2), (10,)], [(2,)], r"dim 0 of operand 1 has size 10, but '.*' requires i=4 x j=2"),
        ("i, (i j) -> i", [(4,), (10,)], [(4,)], r"dim 0 of operand 1 has size 10, which is not a multiple of i=4"),
        (
            "(i j) -> (j i)",
            [(8,)],
            [(8,)],
            r"the factors of dim 0 of operand 0, of size 8: the sizes of i, j must be given",
        ),
        ("1 i -> i", [(2, 4)], [(4,)], r"dim 0 of operand 0 must have size 1 in '.*', but has size 2"),
    ],
)
def test_shapes_that_do_not_fit(text: str, operands: Shapes, results: Shapes, message: str) -> None:
    with pytest.raises(RuleTextError, match=message):
        parse_rule(text).rule(operands, results)


def test_a_function_to_register() -> None:
    op, *_ = ops("""(%a: tensor<2x32xf32>) {
        %0 = "test.split"(%a) : (tensor<2x32xf32>) -> tensor<8x2x4xf32>
        return
      }""")
    rule = rule_from_text("b (h d) -> h b d", h=8)(op, RuleOptions())
    assert str(rule) == "([j, ik])->([i, j, k]) {i=8, j=2, k=4}"
    with pytest.raises(RuleError, match=r"'test.split' \(from text\) does not match the op: '.*' has 2 operands, but"):
        rule_from_text("b, b -> b")(op, RuleOptions())
