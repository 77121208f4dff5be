# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decisions that depend on state are detected by planning each op alone; test/plugins has rules with state."""

from __future__ import annotations

from typing import Any

import pytest

import mlir_shard
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.transforms.propagate.step import Steps

# One decision applies to both ops of each program.
PROPAGATED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %a : tensor<8xf32>
  %1 = stablehlo.negate %b : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
"""
RESHARDED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
  %1 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
"""
PROPAGATE = "sdy-basic-propagate{verify-repetition=true}"
RESHARD = "func.func(sdy-insert-explicit-reshards{enable-full-version=true planner=optimal verify-repetition=true})"


def _run(text: str, pipeline: str) -> None:
    mlir_shard.run(mlir_shard.parse(text, mlir_shard.create_context()), f"builtin.module({pipeline})")


@pytest.mark.parametrize(("text", "pipeline"), [(PROPAGATED, PROPAGATE), (RESHARDED, RESHARD)])
def test_decisions_of_the_package_are_pure(text: str, pipeline: str) -> None:
    _run(text, pipeline)


def test_a_step_of_propagation_that_keeps_state_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    step, seen = Steps._after, set[Any]()

    def only_first(self: Steps, behaviour: Any, before: Any) -> Any:
        key = id(self), before
        is_first = key not in seen
        seen.add(key)
        return step(self, behaviour, before) if is_first else None

    monkeypatch.setattr(Steps, "_after", only_first)
    with pytest.raises(
        PassFailure, match=r"op becomes .* with sdy\.sharding = <\[<@mesh, .* with the plan of an isomorphic op"
    ):
        _run(PROPAGATED, PROPAGATE)


def test_a_choice_of_reshards_that_keeps_state_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    around, asked = CheapestReshards.around, []

    def every_other(self: CheapestReshards, *op: Any) -> PricedReshards:
        asked.append(op)
        return around(self, *op) if len(asked) % 2 else PricedReshards(None)

    monkeypatch.setattr(CheapestReshards, "around", every_other)
    with pytest.raises(PassFailure, match="with the plan of an isomorphic op, but 'stablehlo"):
        _run(RESHARDED, RESHARD)
