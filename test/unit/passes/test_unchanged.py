# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that return False have changed nothing, because the module is not verified after them. Passes that are
skipped, because the module holds nothing that they need, would change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.editing import contents
from mlir_shard.passes.registry import Pass, registered

PROGRAMS = {
    "calls": """
sdy.mesh @same = <["x"=2, "y"=4]>
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {?}]>},
                %b: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@same, [{?}, {"y"}p1]>}) -> tensor<8x12xf32> {
  %0 = call @product(%a, %b) : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  %1 = call @product(%a, %b) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
      : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x12xf32>
  return %2 : tensor<8x12xf32>
}
func.func private @product(%a: tensor<8x16xf32>, %b: tensor<16x12xf32>) -> tensor<8x12xf32> {
  %0 = stablehlo.dot %a, %b : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  return %0 : tensor<8x12xf32>
}
""",
    "loop": """
sdy.mesh @mesh = <["x"=2, "one"=1]>
func.func @main(%a: tensor<7x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "one"}, {?}]>}) -> tensor<7x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<7x6xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.add %v, %v : tensor<7x6xf32>
    %s = sdy.sharding_constraint %w <@mesh, [{}, {"x"}]> : tensor<7x6xf32>
    stablehlo.return %next, %s : tensor<i32>, tensor<7x6xf32>
  }
  return %0#1 : tensor<7x6xf32>
}
""",
    "inlined mesh, grid": """
shard.grid @grid(shape = 2x2)
func.func @main(%a: tensor<8x4xf32>) -> (tensor<8x4xf32>
    {sdy.sharding = #sdy.sharding<mesh<["z"=4]>, [{"z":(1)2}, {"z":(2)2, ?}]>}) {
  %sharding = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %0 = shard.shard %a to %sharding : tensor<8x4xf32>
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
""",
    "nothing sharded": "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }",
}
PIPELINES = ("sdy-propagation-pipeline", "spmd-pipeline", "spmd-pipeline{collectives=stablehlo}")


def idle_passes(program: str, pipeline: str, patch: pytest.MonkeyPatch, by_needs: bool) -> dict[str, bool]:
    """Runs every pass of a pipeline, and checks that idle passes leave the module unchanged.

    Args:
        by_needs: If true, a pass is idle if the module holds nothing that it needs; otherwise, if it returns False.

    Returns:
        For each idle pass, by name, whether it left the module unchanged.
    """
    found: dict[str, bool] = {}

    def watched(one: type[Pass]) -> Callable[[Pass, Any], Any]:
        run, needs = one.run, one.needs

        def compare(this: Pass, op: Any) -> Any:
            before = str(op)
            is_needless = needs is not None and not contents(op).has_any(needs)
            changed = run(this, op)
            if is_needless if by_needs else changed is False:
                found[this.name] = found.get(this.name, True) and str(op) == before
            return changed

        return compare

    for one in registered().values():
        patch.setattr(one, "run", watched(one))
        patch.setattr(one, "needs", None)
    mlir_shard.run(mlir_shard.parse(PROGRAMS[program], mlir_shard.create_context()), f"builtin.module({pipeline})")
    return found


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("by_needs", [False, True], ids=["returns-false", "needs"])
def test_idle_passes_change_nothing(
    by_needs: bool, program: str, pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = idle_passes(program, pipeline, monkeypatch, by_needs)
    assert all(found.values()), [name for name, is_same in found.items() if not is_same]
    assert len(found) > 5


class _Watched(mlir_shard.Pass):
    name = "test-watched"
    summary = "Notes that it runs"
    needs = ("test.attribute", "math.exp")
    runs = 0

    def run(self, op: Any) -> bool:
        _Watched.runs += 1
        return False


@pytest.mark.parametrize(
    ("text", "is_run"),
    [
        ("func.func @main(%a: f32) -> f32 { return %a : f32 }", False),
        ("func.func @main(%a: f32) -> f32 { %0 = math.exp %a : f32\n return %0 : f32 }", True),
        ("func.func @main(%a: f32) -> f32 { return {test.attribute} %a : f32 }", True),
        ("func.func @main(%a: f32 {test.attribute = 1 : i32}) -> f32 { return %a : f32 }", True),
        ("func.func @main(%a: f32) -> (f32 {test.attribute = 1 : i32}) { return %a : f32 }", True),
        ("module attributes {test.attribute} { func.func private @main(f32) }", True),
    ],
)
def test_pass_is_run_where_the_module_holds_what_it_needs(text: str, is_run: bool) -> None:
    context = mlir_shard.create_context()
    context.allow_unregistered_dialects = True
    _Watched.runs = 0

    mlir_shard.run(mlir_shard.parse(text, context), _Watched())

    assert _Watched.runs == is_run


class _MakesExp(mlir_shard.Pass):
    name = "test-makes-exp"
    summary = "Names an operation"

    def run(self, op: Any) -> None:
        op.regions[0].blocks[0].operations[0].attributes["test.attribute"] = ir.UnitAttr.get(op.context)


def test_pass_is_run_where_an_earlier_one_has_made_what_it_needs() -> None:
    context = mlir_shard.create_context()
    context.allow_unregistered_dialects = True
    _Watched.runs = 0

    mlir_shard.run(
        mlir_shard.parse("func.func @main(%a: f32) -> f32 { return %a : f32 }", context),
        [_Watched(), _MakesExp(), _Watched()],
    )

    assert _Watched.runs == 1
