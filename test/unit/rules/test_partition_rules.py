# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the factors along which an op can be partitioned, and of the lookup of partition rules."""

from __future__ import annotations

from typing import Any

import pytest
from rules.modules import ops

from mlir_shard.rules import partition, rule_for
from mlir_shard.rules.partition import Blocks, is_zero, partition_rule, partition_rule_for
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import OpShardingRule


def unshardable(text: str) -> set[int]:
    op = next(op for op in ops(text) if rule_for(op) is not None)
    rule, partition = rule_for(op), partition_rule_for(op)
    assert rule is not None
    assert partition is not None
    is_reducible = not rule.reduction_factors or reduction_op(op) is not None
    return set(partition.never_shardable(rule, is_reducible=is_reducible) | partition.unshardable_here(op, rule))


def test_elementwise_along_all() -> None:
    assert unshardable("(%a: tensor<4x8xf32>) {\n %0 = arith.negf %a : tensor<4x8xf32>\n return }") == set()


def test_need_replication() -> None:
    assert unshardable("""(%a: tensor<4x8xf32>) {
        %0 = linalg.softmax dimension(0) ins(%a : tensor<4x8xf32>) outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
        return
      }""") == {0}


def reduce(combiner: str, initial: str) -> str:
    return f"""(%a: tensor<4x8xf32>) {{
        %z = stablehlo.constant dense<{initial}> : tensor<f32>
        %0 = stablehlo.reduce(%a init: %z) applies stablehlo.{combiner} across dimensions = [0] :
          (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
        return
      }}"""


@pytest.mark.parametrize(
    ("combiner", "initial", "expected"),
    [("add", "0.0", set()), ("add", "1.0", set()), ("maximum", "1.0", set()), ("multiply", "1.0", {0})],
)
def test_reductions(combiner: str, initial: str, expected: set[int]) -> None:
    assert unshardable(reduce(combiner, initial)) == expected


def test_a_reshape_along_what_both_sides_have() -> None:
    text = "(%a: tensor<2x3x8xf32>) {\n %0 = stablehlo.reshape %a : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>\n return }"
    rule = rule_for(ops(text)[0])
    assert str(rule) == "([i, k, m])->([j, l, m]) {i=2, j=3, k=3, l=2, m=8}"
    assert unshardable(text) == {0, 1, 2, 3}


def test_a_broadcast_along_the_dimensions_it_makes() -> None:
    text = """(%a: tensor<8xf32>) {
        %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
        return
      }"""
    assert unshardable(text) == set()


def test_names_come_before_predicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_by_name", {})
    monkeypatch.setattr(partition, "_by_predicate", [])

    @partition_rule(when=lambda op: op.name.startswith("arith."))
    def by_predicate(op: Any, blocks: Blocks) -> None:
        """Does nothing."""

    negate, add, _, terminator = ops("""(%a: tensor<4xf32>) {
        %0 = arith.negf %a : tensor<4xf32>
        %1 = arith.addf %a, %a : tensor<4xf32>
        %2 = math.exp %a : tensor<4xf32>
        return
      }""")

    @partition_rule("arith.addf", unshardable=lambda op, rule: [0])
    def by_name(op: Any, blocks: Blocks) -> None:
        """Does nothing."""

    found = [partition_rule_for(op) for op in (negate, add)]
    assert [rule and rule.localize for rule in found] == [by_predicate, by_name]
    assert partition_rule_for(terminator) is None
    assert found[1] is not None
    assert found[1].unshardable_here(add, OpShardingRule.pointwise((4,), 2)) == {0}


def test_reduction_axes() -> None:
    rule = OpShardingRule((4, 8), (), (), reduction_factors=(1,))
    assert Blocks((), rule, ((0,), (2, 1))).reduction_axes == (2, 1)
    assert Blocks(()).reduction_axes == ()


def test_zeros() -> None:
    *found, _ = ops("""(%a: tensor<4xf32>) {
        %0 = arith.constant 0.0 : f32
        %1 = arith.constant 1.0 : f32
        %2 = arith.constant dense<0> : tensor<4xi32>
        %3 = stablehlo.constant dense<-0.0> : tensor<f32>
        %4 = arith.constant dense<[0, 1]> : tensor<2xi32>
        %5 = tensor.splat %0 : tensor<4xf32>
        %6 = linalg.fill ins(%0 : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
        %7 = linalg.fill ins(%1 : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
        %8 = arith.negf %a : tensor<4xf32>
        return
      }""")
    assert [is_zero(op.results[0]) for op in found] == [True, False, True, True, False, True, True, False, False]
    assert not is_zero(found[-1].operands[0])


def test_rules_look_at_nothing_but_their_ops() -> None:
    # The result for one op is reused for all isomorphic ops; the body of a composite is a separate function.
    own = {
        name: rule for name, rule in partition._by_name.items() if rule.localize.__module__.startswith("mlir_shard.")
    }
    assert len(own) > 100
    assert {name for name, rule in own.items() if not rule.pure} == {"stablehlo.composite"}
