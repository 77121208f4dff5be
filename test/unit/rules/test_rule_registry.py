# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the lookup of rules by name, dialect, predicate and attribute, once per distinct op."""

from __future__ import annotations

from typing import Any

import pytest
from rules.modules import ops

from mlir_shard.rules import RuleCache, RuleError, RuleOptions, registry, rule_for, sharding_rule
from mlir_shard.rules.registry import context_of, depends_on_context, has_rule_for_any_sizes
from mlir_shard.sharding import OpShardingRule

PAIR = """(%a: tensor<4xf32>) {
    %0 = "test.a"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "test.b"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return
  }"""


@pytest.fixture(autouse=True)
def own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the rules that a test registered after the test."""
    for name in ("_by_name", "_by_dialect"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setattr(registry, "_by_predicate", list(registry._by_predicate))


def pointwise(op: Any, options: RuleOptions) -> OpShardingRule:
    return OpShardingRule.pointwise(tuple(op.results[0].type.shape), len(op.operands))


def test_names_come_before_dialects_and_predicates() -> None:
    asked = []

    def noting(name: str) -> Any:
        def rule(op: Any, options: RuleOptions) -> OpShardingRule:
            asked.append((name, op.name))
            return pointwise(op, options)

        return rule

    sharding_rule(when=lambda op: op.name.startswith("test."))(noting("predicate"))
    a, b, _ = ops(PAIR)
    rule_for(a)
    sharding_rule("test.*")(noting("dialect"))
    sharding_rule("test.a")(noting("name"))
    rule_for(a)
    rule_for(b)
    assert asked == [("predicate", "test.a"), ("name", "test.a"), ("dialect", "test.b")]


def test_an_op_without_rule() -> None:
    a, _, terminator = ops(PAIR)
    assert rule_for(a) is None
    assert rule_for(terminator) is None


def test_the_attribute_comes_first() -> None:
    (op, _) = ops("""(%a: tensor<2x4xf32>) {
        %0 = stablehlo.negate %a
          {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=2, j=4, k=4}>} : tensor<2x4xf32>
        return
      }""")
    assert str(rule_for(op)) == "([i, j])->([i, k]) {i=2, j=4, k=4}"


def test_asked_once_per_distinct_op() -> None:
    asked = []

    @sharding_rule("test.a")
    def rule(op: Any, options: RuleOptions) -> OpShardingRule:
        asked.append(options)
        return pointwise(op, options)

    found = ops("""(%a: tensor<4xf32>, %b: tensor<8xf32>) {
        %0 = "test.a"(%a) : (tensor<4xf32>) -> tensor<4xf32>
        %1 = "test.a"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        %2 = "test.a"(%0) {sdy.sharding = 1} : (tensor<4xf32>) -> tensor<4xf32>
        %3 = "test.a"(%b) : (tensor<8xf32>) -> tensor<8xf32>
        %4 = "test.a"(%a) {other} : (tensor<4xf32>) -> tensor<4xf32>
        return
      }""")
    cache = RuleCache(RuleOptions(conservative=True))
    rules = [cache.rule_for(op) for op in found]
    assert asked == [RuleOptions(conservative=True)] * 3
    assert rules[0] is rules[1] is rules[2]
    assert rules[3] != rules[0]
    assert rules[5] is None


ONE_USED = """(%a: tensor<4xf32>) {
  %0 = "test.a"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "test.a"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return
}"""


def test_a_rule_may_look_at_more_than_its_op() -> None:
    @sharding_rule("test.a", context_key=lambda op: len(list(op.results[0].uses)))
    def rule(op: Any, options: RuleOptions) -> OpShardingRule | None:
        return pointwise(op, options) if list(op.results[0].uses) else None

    used, unused, _ = ops(ONE_USED)
    cache = RuleCache()
    assert cache.rule_for(used) is not None
    assert cache.rule_for(unused) is None


def test_a_rule_may_look_at_more_than_its_op_only_for_computing() -> None:
    asked: list[Any] = []

    def uses(op: Any) -> int:
        asked.append(op)
        return len(list(op.results[0].uses))

    @sharding_rule("test.a", computing_context_key=uses)
    def rule(op: Any, options: RuleOptions) -> OpShardingRule | None:
        return pointwise(op, options) if not options.computing or list(op.results[0].uses) else None

    used, unused, _ = ops(ONE_USED)
    cache = RuleCache()
    assert cache.rule_for(used) is cache.rule_for(unused) is not None
    assert not asked and not depends_on_context(used) and context_of(used) is None
    computing = RuleOptions(computing=True)
    cache = RuleCache(computing)
    assert cache.rule_for(used) is not None and cache.rule_for(unused) is None
    assert depends_on_context(used, computing) and context_of(used, computing) == (1,)
    assert not has_rule_for_any_sizes("test.a")


def test_dynamic_shapes_have_no_rule() -> None:
    (op, other, _) = ops("""(%a: tensor<?xf32>) {
        %0 = arith.negf %a : tensor<?xf32>
        %1 = stablehlo.custom_call @Sharding(%a) : (tensor<?xf32>) -> tensor<4xf32>
        return
      }""")
    cache = RuleCache()
    for one in (op, other):
        assert rule_for(one) is None
        assert cache.rule_for(one) is None


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (
            OpShardingRule.pointwise((4,), 2),
            r"of 'test.a' \(.*\) does not match the op: the rule maps 2 operands, but the op has 1",
        ),
        (OpShardingRule.pointwise((4, 4), 1), r"operand: the mapping \[i, j\] has 2 dimensions, but the tensor has 1"),
        (OpShardingRule.pointwise((8,), 1), r"dim 0 of operand 0 has size 4, but the rule requires i=8"),
        (OpShardingRule.pointwise(("4",), 1), r"returned a rule with fields of invalid types"),
        ("nonsense", r"returned str 'nonsense', but must return an OpShardingRule or None"),
    ],
)
def test_a_rule_that_does_not_fit(gives: Any, message: str) -> None:
    sharding_rule("test.a")(lambda op, options: gives)
    a, *_ = ops(PAIR)
    with pytest.raises(RuleError, match=message) as raised:
        rule_for(a)
    assert raised.value.op == a


def test_a_rule_that_raises() -> None:
    @sharding_rule("test.a")
    def broken(op: Any, options: RuleOptions) -> OpShardingRule:
        raise KeyError("dim")

    a, *_ = ops(PAIR)
    with pytest.raises(RuleError, match=r"rule of 'test.a' \(broken in .*\.py:\d+\) failed in line \d+: KeyError"):
        rule_for(a)
