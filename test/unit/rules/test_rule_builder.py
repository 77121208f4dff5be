# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of rules that are built factor by factor."""

from __future__ import annotations

import pytest

from mlir_shard.rules import RuleBuilder
from mlir_shard.sharding.rule import FactorType


def test_matmul() -> None:
    rule = (
        RuleBuilder([2, 2], [2])
        .add_factor([0, None], [0], 4)
        .add_factor([None, 1], [1], 8)
        .add_factor([1, 0], [None], 16, FactorType.REDUCTION)
        .build()
    )
    assert str(rule) == "([i, k], [k, j])->([i, j]) {i=4, j=8, k=16}"
    assert rule.reduction_factors == (2,)


def test_types_and_blocking() -> None:
    builder = RuleBuilder([4], [4])
    for dim, type_ in enumerate(FactorType):
        builder.add_common_factor(dim, 8, type_, blocked=dim == 2)
    rule = builder.build()
    assert [rule.factor_type(factor) for factor in range(4)] == list(FactorType)
    assert rule.blocked_propagation_factors == (2,)


def test_a_dimension_that_not_all_tensors_have() -> None:
    rule = RuleBuilder([2, 1], [2]).add_pointwise([4, 8]).build()
    assert str(rule) == "([i, j], [i])->([i, j]) {i=4, j=8}"


def test_resized_dimensions() -> None:
    builder = RuleBuilder([2, 0], [2]).add_resized([4, 8], [4, 2], FactorType.PERMUTATION)
    rule = builder.build()
    assert str(rule) == "([i, j], [])->([i, j]) {i=4, j=8}"
    assert (rule.permutation_factors, rule.blocked_propagation_factors) == ((1,), ())
    blocked = RuleBuilder([2], [2]).add_resized([4, 8], [2, 8], FactorType.NEED_REPLICATION, blocked=True).build()
    assert (blocked.need_replication_factors, blocked.blocked_propagation_factors) == ((0,), (0,))


def test_only_dimensions_of_the_same_rank_are_resized() -> None:
    with pytest.raises(ValueError, match=r"the shapes \(4, 8\) and \(4,\) have different ranks"):
        RuleBuilder([2], [1]).add_resized([4, 8], [4], FactorType.PERMUTATION)


def test_factors_of_sides() -> None:
    rule = RuleBuilder([1, 1, 0], [1]).add_factors_of_sides(0, 4, 8).build()
    assert str(rule) == "([i], [i], [])->([j]) {i=4, j=8}"
    assert rule.need_replication_factors == (0, 1)


def test_later_factors_are_minor() -> None:
    rule = RuleBuilder([1], [2]).add_factor([0], [0], 2).add_factor([0], [1], 4).build()
    assert str(rule) == "([ij])->([i, j]) {i=2, j=4}"


def test_a_factor_of_size_one_is_none_of_several() -> None:
    rule = RuleBuilder([1], [1]).add_factor([0], [0], 4).add_factor([0], [None], 1).build()
    assert str(rule) == "([i])->([i]) {i=4, j=1}"


def test_scalars_take_no_part() -> None:
    rule = RuleBuilder([0, 2], [2]).add_pointwise([4, 8]).build()
    assert str(rule) == "([], [i, j])->([i, j]) {i=4, j=8}"


def test_a_dimension_without_factor_gets_its_own() -> None:
    builder = RuleBuilder([2], [1]).add_factor([1], [0], 8)
    assert str(builder.build()) == "([j, i])->([i]) {i=8, j=1}"
    # Building does not change the builder.
    assert builder.build() == builder.build()


def test_a_factor_names_every_tensor() -> None:
    with pytest.raises(ValueError, match="for each of 2 operands and 1 results, got 1 and 1"):
        RuleBuilder([1, 1], [1]).add_factor([0], [0], 4)
