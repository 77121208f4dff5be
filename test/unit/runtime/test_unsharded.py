# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with their sharding taken out."""

from __future__ import annotations

import pytest

import mlir_shard
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.unsharded import drop_sharding

TYPE = "tensor<8x8xf32>"
HEADER = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'


def without_sharding(text: str) -> str:
    module = mlir_shard.parse(text, mlir_shard.create_context())
    drop_sharding(module)
    assert module.operation.verify()
    return str(module)


def plain(body: str, returned: str) -> str:
    text = f"func.func @main(%a: {TYPE}) -> {TYPE} {{\n{body}\n  return {returned} : {TYPE}\n}}"
    return str(mlir_shard.parse(text, mlir_shard.create_context()))


def test_annotations_of_sdy() -> None:
    text = f"""{HEADER}
    func.func @main(%a: {TYPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
        -> ({TYPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{
      %0 = stablehlo.add %a, %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}} : {TYPE}
      %1 = sdy.sharding_constraint %0 <@mesh, [{{"y"}}, {{}}]> : {TYPE}
      sdy.sharding_group %1 group_id = 0 : {TYPE}
      %2 = sdy.propagation_barrier %1 allowed_direction = NONE : {TYPE}
      %3 = sdy.reshard %2 <@mesh, [{{}}, {{"y"}}]> : {TYPE}
      %4 = sdy.all_gather [{{}}, {{"y"}}] %3 out_sharding = <@mesh, [{{}}, {{}}]> : {TYPE}
      return %4 : {TYPE}
    }}"""
    assert without_sharding(text) == plain(f"  %0 = stablehlo.add %a, %a : {TYPE}", "%0")


def test_annotations_of_shard() -> None:
    text = f"""
    shard.grid @grid(shape = 2x2)
    func.func @main(%a: {TYPE}) -> {TYPE} {{
      %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
      %0 = shard.shard %a to %s : {TYPE}
      %1 = shard.shard %0 to %s annotate_for_users : {TYPE}
      %2 = stablehlo.add %1, %1 : {TYPE}
      return %2 : {TYPE}
    }}"""
    assert without_sharding(text) == plain(f"  %0 = stablehlo.add %a, %a : {TYPE}", "%0")


def test_a_named_computation_and_a_constant() -> None:
    text = f"""{HEADER}
    func.func @main(%a: {TYPE}) -> {TYPE} {{
      %0 = sdy.named_computation<"outer">(%a) (%b: {TYPE}) {{
        %1 = sdy.named_computation<"inner">(%b) (%c: {TYPE}) {{
          %2 = stablehlo.multiply %c, %c : {TYPE}
          %3 = sdy.sharding_constraint %2 <@mesh, [{{"x"}}, {{}}]> : {TYPE}
          sdy.return %3 : {TYPE}
        }} : ({TYPE}) -> {TYPE}
        sdy.return %1 : {TYPE}
      }} : ({TYPE}) -> {TYPE}
      %4 = sdy.constant dense<2.0> : {TYPE}
      %5 = stablehlo.add %0, %4 : {TYPE}
      return %5 : {TYPE}
    }}"""
    body = f"""
      %0 = stablehlo.multiply %a, %a : {TYPE}
      %1 = stablehlo.constant dense<2.0> : {TYPE}
      %2 = stablehlo.add %0, %1 : {TYPE}"""
    assert without_sharding(text) == plain(body, "%2")


def test_a_manual_computation_has_no_meaning_on_one_device() -> None:
    text = f"""{HEADER}
    func.func @main(%a: {TYPE}) -> {TYPE} {{
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{}}]>]
          manual_axes={{"x"}} (%b: tensor<4x8xf32>) {{
        sdy.return %b : tensor<4x8xf32>
      }} : ({TYPE}) -> {TYPE}
      return %0 : {TYPE}
    }}"""
    with pytest.raises(RunError, match=r"4:12: error: 'sdy.manual_computation' has no meaning on one device"):
        without_sharding(text)
