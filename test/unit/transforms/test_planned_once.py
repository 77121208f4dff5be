# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How often `spmdize` plans ops that are isomorphic."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import mlir_shard
from mlir_shard.transforms.partition.plan import Planner

SHARDED = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}'


def planned(monkeypatch: pytest.MonkeyPatch, body: str) -> Counter[str]:
    """The names of the ops that are planned in a function of the values %a and %b, sharded in rows."""
    plan, names = Planner._plan, Counter[str]()

    def counted(self: Planner, op: Any, plans: list[Any]) -> None:
        names[op.name] += 1
        plan(self, op, plans)

    monkeypatch.setattr(Planner, "_plan", counted)
    argument = 'tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    text = f"""
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: {argument}, %b: {argument}) {{
      {body}
      return
    }}"""
    mlir_shard.run(mlir_shard.parse(text, mlir_shard.create_context()), "builtin.module(spmdize)")
    return names


def rotated(value: str) -> str:
    """A rotation of the columns of a value, as of the angles of an embedding."""
    halves = "(tensor<8x4xf32>) -> tensor<8x2xf32>"
    return f"""
      {value}0 = stablehlo.slice {value} [0:8, 0:2] {SHARDED} : {halves}
      {value}1 = stablehlo.slice {value} [0:8, 2:4] {SHARDED} : {halves}
      {value}2 = stablehlo.concatenate {value}1, {value}0, dim = 1 {SHARDED}
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>"""


def test_those_whose_rules_look_at_the_same_around_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = planned(monkeypatch, rotated("%a") + rotated("%b"))
    assert names["stablehlo.slice"] == 2
    assert names["stablehlo.concatenate"] == 1


def test_those_whose_rules_look_at_something_else_each(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = f"""
      %c0 = stablehlo.slice %b [0:8, 0:2] {SHARDED} : (tensor<8x4xf32>) -> tensor<8x2xf32>
      %c1 = stablehlo.negate %c0 {SHARDED} : tensor<8x2xf32>
      %c2 = stablehlo.concatenate %c1, %c1, dim = 1 {SHARDED}
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>
      %c3 = stablehlo.concatenate %a0, %a0, dim = 1 {SHARDED}
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>"""
    assert planned(monkeypatch, rotated("%a") + joined)["stablehlo.concatenate"] == 3


def test_those_that_pass_values_on_and_have_no_regions_once(monkeypatch: pytest.MonkeyPatch) -> None:
    barriers = (f"%{one}3 = stablehlo.optimization_barrier {SHARDED} %{one} : tensor<8x4xf32>" for one in "ab")
    assert planned(monkeypatch, "\n".join(barriers))["stablehlo.optimization_barrier"] == 1
