# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`canonicalize` runs the driver only where a pattern of this project may match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mlir_shard
from mlir_shard.transforms.canonicalize import canonicalize

PROGRAMS = [
    program
    for name in ("collectives", "collective_chains", "reduce_scatter")
    for program in (Path(__file__).parents[2] / "transforms" / "canonicalize" / f"{name}.mlir")
    .read_text()
    .split("// -----")
]
PIPELINE = "builtin.module(canonicalize{enable-patterns=sdy-collective,shard-collective})"


def text_after(program: str, context: Any, pipeline: str = PIPELINE) -> str:
    module = mlir_shard.parse(program, context)
    mlir_shard.run(module, pipeline)
    return mlir_shard.print_module(module)


def test_what_may_not_match_is_left_by_the_driver_too(monkeypatch: pytest.MonkeyPatch) -> None:
    context = mlir_shard.create_context()
    found = [text_after(program, context) for program in PROGRAMS]
    monkeypatch.setattr(canonicalize, "matching", lambda _, patterns: list(patterns))
    assert found == [text_after(program, context) for program in PROGRAMS]


def test_the_driver_does_not_run_where_no_pattern_may_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(canonicalize, "apply_greedily")
    program = """
      sdy.mesh @mesh = <["x"=2, "y"=2]>
      func.func @f(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
        %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x8xf32>
        %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<8x8xf32>
        %2 = sdy.all_reduce {"x"} %1 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x8xf32>
        %3 = sdy.all_gather [{}, {"y"}] %2 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
        %4 = sdy.all_slice [{"y"}, {}] %3 out_sharding=<@mesh, [{"y"}, {}]> : tensor<8x8xf32>
        %5 = sdy.all_to_all [{"y"}: 0->1] %4 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x8xf32>
        %6 = sdy.collective_permute %5 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
        return %6 : tensor<8x8xf32>
      }
    """
    after = text_after(program, mlir_shard.create_context())
    for name in ("all_gather", "all_slice", "all_to_all", "collective_permute"):
        assert f"sdy.{name} " in after


def test_a_generic_op_with_one_result_has_no_unused_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(canonicalize, "apply_greedily")
    program = """
      func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
        %e = tensor.empty() : tensor<4xf32>
        %0 = linalg.generic {
            indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
            ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%in: f32, %out: f32):
          %1 = math.exp %in : f32
          linalg.yield %1 : f32
        } -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    """
    after = text_after(program, mlir_shard.create_context(), "builtin.module(canonicalize)")
    assert "linalg.generic" in after
