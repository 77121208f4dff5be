# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the rules of custom calls, by target."""

from __future__ import annotations

from typing import Any

import pytest
from rules.modules import ops, rule_of, spelled

from mlir_shard.rules import RuleCache, RuleOptions, registry
from mlir_shard.rules.builder import pointwise
from mlir_shard.sharding import OpShardingRule


def call(target: str, operands: list[str], results: list[str]) -> str:
    """Returns the rule of a call of `target`, from shapes such as `4x8`, or `` for scalars."""
    before, after = (
        [f"tensor<{shape}{'x' if shape else ''}f32>" for shape in shapes] for shapes in (operands, results)
    )
    signature = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(before))
    arguments = ", ".join(f"%a{number}" for number in range(len(before)))
    count = f":{len(after)}" if len(after) > 1 else ""
    return rule_of(
        signature,
        f"%0{count} = stablehlo.custom_call @{target}({arguments}) : ({', '.join(before)}) -> ({', '.join(after)})",
    )


@pytest.mark.parametrize(
    ("target", "operands", "results", "expected"),
    [
        ("MoveToHost", ["4x8"], ["4x8"], "([i, j])->([i, j]) {i=4, j=8}"),
        ("_SPMDInternalOp_MultiRotate", ["4"], ["4", "4"], "([i])->([i], [i]) {i=4}"),
        # Tensors of different ranks.
        ("mhlo.erf", ["4x8"], ["4"], "([i, j])->([i]) {i=4, j=1}"),
        ("mhlo.erf", ["4"], ["4x8"], "([i])->([i, j]) {i=4, j=8}"),
        ("mhlo.erf", [], ["4"], "None"),
        ("Eigh", ["2x6x6"], ["2x6x6", "2x6"], "([i, j, k])->([i, j, k], [i, k]) {i=2, j=6, k=6}"),
        (
            "Qr",
            ["2x6x3"],
            ["2x6x3", "2x3"],
            "([i, j, k])->([i, j, k], [i, l]) {i=2, j=6, k=3, l=3} need_replication=j,k,l",
        ),
        (
            "ProductOfElementaryHouseholderReflectors",
            ["6x6", "3"],
            ["6x6"],
            "([i, j], [k])->([i, j]) {i=6, j=6, k=3} need_replication=i,j,k",
        ),
        (
            "mhlo.topk",
            ["4x8"],
            ["4x2", "4x2"],
            "([i, j])->([i, j], [i, j]) {i=4, j=8} need_replication=j blocked_propagation=j",
        ),
        (
            "mhlo.topk",
            ["4x8"],
            ["4x8", "4x8"],
            "([i, j])->([i, j], [i, j]) {i=4, j=8} need_replication=j blocked_propagation=j",
        ),
        (
            "ApproxTopK",
            ["4x8", "4x8", "", ""],
            ["4x2", "4x2"],
            "([i, j], [i, j], [], [])->([i, k], [i, k]) {i=4, j=8, k=2} need_replication=k blocked_propagation=k",
        ),
        ("xla_python_cpu_callback", ["4x8"], ["4x8"], "None"),
        ("some_kernel", ["4x8"], ["4x8"], "None"),
        # Known targets with an unsupported signature.
        ("Eigh", ["6x6"], ["6x6"], "None"),
        ("Qr", ["6x6", "6"], ["6x6", "6"], "None"),
        ("ProductOfElementaryHouseholderReflectors", ["6x6"], ["6x6"], "None"),
        ("mhlo.topk", ["8"], ["2"], "None"),
        ("PartialReduce", ["8"], ["2"], "None"),
    ],
)
def test_rules(target: str, operands: list[str], results: list[str], expected: str) -> None:
    assert call(target, operands, results) == expected


def test_words_of_a_random_state_are_whole() -> None:
    combine = "stablehlo.custom_call @X64Combine(%a, %a) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>"
    free, seed, *_ = ops(f"""(%a: tensor<2xui32>) {{
        %0 = {combine}
        %1 = {combine}
        %2, %3 = stablehlo.rng_bit_generator %1, algorithm = DEFAULT :
          (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
        return
      }}""")
    rule = "([i], [i])->([i]) {i=2}"
    cache = RuleCache()
    assert [spelled(free), spelled(seed)] == [rule, f"{rule} need_replication=i blocked_propagation=i"]
    assert [getattr(cache.rule_for(op), "need_replication_factors", None) for op in (free, seed)] == [(), (0,)]


def test_a_rule_for_a_target_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))

    @registry.sharding_rule("stablehlo.custom_call:some_kernel")
    def rule(op: Any, options: RuleOptions) -> OpShardingRule | None:
        return pointwise(op)

    assert call("some_kernel", ["4"], ["4"]) == "([i])->([i]) {i=4}"


def test_the_attribute_is_the_rule_of_any_call() -> None:
    rule = "#sdy.op_sharding_rule<([i, j])->([j, i]) {i=4, j=8}, custom>"
    (op, _) = ops(f"""(%a: tensor<4x8xf32>) {{
        %0 = stablehlo.custom_call @some_kernel(%a) {{sdy.sharding_rule = {rule}}} :
          (tensor<4x8xf32>) -> tensor<8x4xf32>
        return
      }}""")
    assert spelled(op) == "([i, j])->([j, i]) {i=4, j=8}"
