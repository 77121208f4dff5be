# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every mistake that is made in these local programs changes their results, and is refused."""

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
    "looped": """func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>},
    %w: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}
) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<8x16xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %2, %1 : tensor<i32>, tensor<8x16xf32>
  }
  return %0#1 : tensor<8x16xf32>
}""",
    "branched": """func.func @main(
    %c: tensor<i1>,
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}
) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.if"(%c) ({
    %1 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    %1 = stablehlo.negate %a : tensor<8x16xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
    "manual": """func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>},
    %b: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}
) -> (tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %0 = sdy.manual_computation(%a, %b)
      in_shardings=[<@m, [{"x"}, {}]>, <@m, [{}, {}]>] out_shardings=[<@m, [{"x"}, {}]>] manual_axes={"x"}
      (%c: tensor<4x16xf32>, %d: tensor<16x12xf32>) {
    %1 = stablehlo.dot_general %c, %d, contracting_dims = [1] x [0]
        : (tensor<4x16xf32>, tensor<16x12xf32>) -> tensor<4x12xf32>
    sdy.return %1 : tensor<4x12xf32>
  } : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  return %0 : tensor<8x12xf32>
}""",
    "with halos": """func.func @main(
    %a: tensor<1x16x16x1xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x", "y"}, {}, {}]>},
    %w: tensor<3x3x1x1xf32>
) -> (tensor<1x16x16x1xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x", "y"}, {}, {}]>}) {
  %0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x16x16x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x16x16x1xf32>
  return %0 : tensor<1x16x16x1xf32>
}""",
    "looked up": """func.func @main(
    %table: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>},
    %at: tensor<6x1xi32>
) -> (tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}) {
  %0 = "stablehlo.gather"(%table, %at) <{
      dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
      index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}>
      : (tensor<16x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}""",
}


# They have offsets along unsharded dimensions and masks of elements that are zero anyway: changing these has no effect.
WHOLE = ("looped", "branched", "manual", "with halos", "looked up")


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
            if kind in ("offset changed", "mask moved", "mask left out") and name in WHOLE:
                continue
            change()
        assert not checked(one, module).is_proved, f"{kind}\n{module}"
        refused += 1
    assert refused >= (0 if name == "masked" and target == "stablehlo" else 1)
