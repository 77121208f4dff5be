# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every mistake that is made in these local programs changes what they compute, and is refused."""

from __future__ import annotations

from random import Random

import pytest
from certified_programs.mutants import mutations
from certified_programs.partitioned import Source, checked, partitioned

from mlir_shard.dialects.parsing import parse

MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>\n'
PROGRAMS = {
    "contraction": """func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>},
    %b: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}
) -> (tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  return %0 : tensor<8x12xf32>
}""",
    "gathered": """func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}
) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}) {
  return %a : tensor<8x16xf32>
}""",
    "exchanged": """func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}
) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y", "x"}]>}) {
  %0 = stablehlo.negate %a : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}""",
    "sliced": """func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}
) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {"x"}]>}) {
  return %a : tensor<8x16xf32>
}""",
    "masked": """func.func @main(
    %a: tensor<7x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}
) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<7x16xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}""",
}


@pytest.mark.parametrize("target", ["shard", "stablehlo"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_mistakes_are_refused(name: str, target: str) -> None:
    one = partitioned(Source(name, MESH + PROGRAMS[name]), target)
    assert one is not None
    assert one.verdict.is_proved
    text, grid = str(one.module), tuple(one.certificate.mesh.values())
    with one.module.context:
        count = len(list(mutations(parse(text, one.module.context, "local"), grid, Random(0))))
    refused = 0
    for number in range(count):
        module = parse(text, one.module.context, "local")
        with one.module.context:
            kind, change = list(mutations(module, grid, Random(0)))[number]
            change()
        assert not checked(one, module).is_proved, f"{kind}\n{module}"
        refused += 1
    assert refused >= (0 if name == "masked" and target == "stablehlo" else 1)
