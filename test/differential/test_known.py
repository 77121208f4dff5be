# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that rare mistakes of Shardy are recognized in minimal programs that show them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from differential.compare import Comparison
from differential.known import mistake_of_shardy
from differential.sides import Here, Shardy

_WHOLE = "sdy-propagation-pipeline"
_BASIC = "sdy-basic-propagate"
_SPLITTER = "sdy-constant-or-scalar-splitter"
_MESH = 'sdy.mesh @m = <["a"=2, "b"=2]>\n'

_ONE_PARTIAL_RESULT = """
func.func @main(%0: tensor<8xf32>) -> tensor<8xf32> {
  %1:2 = stablehlo.custom_call @two(%0)
    {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}], unreduced={"a"}>, <@m, [{}]>]>}
    : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %1#0 : tensor<8xf32>
}
"""
_OTHER_PARTIAL_AXES = """
func.func @main(%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"a"}>}) -> tensor<8xf32> {
  %1 = sdy.reshard %0 <@m, [{}], unreduced={"b"}> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""
_RETURNED_ARGUMENT = """
func.func @main(%0: tensor<8xf32>) {
  %1:2 = call @f(%0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %2:2 = call @f(%1#0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}
func.func private @f(%0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %1 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}]>]>} : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
"""
_TWO_GROUPS = """
func.func @main(%0: tensor<8xf32>) -> tensor<8xf32> {
  sdy.sharding_group %0 group_id=0 : tensor<8xf32>
  sdy.sharding_group %0 group_id=1 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
_PARTIAL_RESULT_OF_A_CALL = """
func.func @main() -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m, [], unreduced={"b"}>}, tensor<f32>) {
  %0 = stablehlo.custom_call @source() : () -> tensor<f32>
  %1:2 = call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced={"b"}>, <@m, []>]>}
    : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %2 = stablehlo.custom_call @source() : () -> tensor<f32>
  return %1#0, %2 : tensor<f32>, tensor<f32>
}
func.func private @f(%0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %0, %0 : tensor<f32>, tensor<f32>
}
"""
_UNREDUCED_RESULT_OF_A_FUNCTION = """
func.func @main(%0: tensor<4x8xf32>) {
  %1 = call @f(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
func.func private @f(%0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %1 = sdy.reshard %0 <@m, [{}, {}], unreduced={"b"}> : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
"""
_TWO_USES_OF_AN_ARGUMENT = """
func.func @main(%0: tensor<2x2xf32>) {
  %1:2 = call @f(%0) : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<1x2xf32>)
  return
}
func.func private @f(%0: tensor<2x2xf32>)
    -> (tensor<2x2xf32>, tensor<1x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {}]>}) {
  %1:2 = stablehlo.while(%2 = %0, %3 = %0) : tensor<2x2xf32>, tensor<2x2xf32> cond {
    %4 = stablehlo.custom_call @source() : () -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.transpose %2, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    stablehlo.return %4, %4 : tensor<2x2xf32>, tensor<2x2xf32>
  }
  %5 = stablehlo.custom_call @source() : () -> tensor<f32>
  %6 = "stablehlo.reduce_window"(%0, %5) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%7: tensor<f32>, %8: tensor<f32>):
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<2x2xf32>, tensor<f32>) -> tensor<1x2xf32>
  return %1#1, %6 : tensor<2x2xf32>, tensor<1x2xf32>
}
"""
_GROUP_OF_A_CONSTANT_CALL = """
func.func @main() -> tensor<4x24xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %1:2 = call @f(%0) : (tensor<8x4xf32>) -> (tensor<3x8x4xf32>, tensor<8x4xf32>)
  sdy.sharding_group %1#0 group_id=1 : tensor<3x8x4xf32>
  %2:2 = sdy.manual_computation(%1#0, %0) in_shardings=[<@m, [{}, {"b", ?}, {}]>, <@m, [{"b", "a", ?}, {}]>]
      out_shardings=[<@m, [{"b"}, {"a"}]>, <@m, [{"b", ?}, {"a"}]>] manual_axes={"a", "b"}
      (%3: tensor<3x4x4xf32>, %4: tensor<2x4xf32>) {
    %5 = stablehlo.custom_call @source() : () -> tensor<2x4xf32>
    sdy.return %5, %5 : tensor<2x4xf32>, tensor<2x4xf32>
  } : (tensor<3x8x4xf32>, tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %6:2 = stablehlo.while(%7 = %2#1, %8 = %1#1) : tensor<4x8xf32>, tensor<8x4xf32> cond {
    %9 = stablehlo.custom_call @source() : () -> tensor<i1>
    stablehlo.return %9 : tensor<i1>
  } do {
    stablehlo.return %2#1, %8 : tensor<4x8xf32>, tensor<8x4xf32>
  }
  %10 = stablehlo.concatenate %2#1, %2#0, %6#0, dim = 1
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x24xf32>
  return %10 : tensor<4x24xf32>
}
func.func private @f(%0: tensor<8x4xf32>) -> (tensor<3x8x4xf32>, tensor<8x4xf32>) {
  %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<8x4xf32>) -> tensor<3x8x4xf32>
  return %1, %0 : tensor<3x8x4xf32>, tensor<8x4xf32>
}
"""
# Shardy does not revisit the division either, after the broadcast has sharded %2.
_MANUAL_AXES_THAT_HIDE_ANOTHER_MISTAKE = """
func.func @main(%0: tensor<4x4xf32>) -> (tensor<3x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {}]>}) {
  %1 = stablehlo.abs %0 : tensor<4x4xf32>
  %2 = stablehlo.while(%3 = %1) : tensor<4x4xf32> cond {
    %4 = stablehlo.custom_call @source() : () -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.divide %3, %1 : tensor<4x4xf32>
    stablehlo.return %4 : tensor<4x4xf32>
  }
  %5 = stablehlo.broadcast_in_dim %2, dims = [0, 1]
    {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"a", ?}, {}]>]>} : (tensor<4x4xf32>) -> tensor<4x4x2xf32>
  %6:2 = sdy.manual_computation(%5) in_shardings=[<@m, [{}, {}, {}]>] out_shardings=[<@m, [{}, {"a"}]>, <@m, [{?}, {}]>]
      manual_axes={"a"} (%7: tensor<4x4x2xf32>) {
    %8 = stablehlo.custom_call @source() : () -> tensor<3x4xf32>
    sdy.return %8, %8 : tensor<3x4xf32>, tensor<3x4xf32>
  } : (tensor<4x4x2xf32>) -> (tensor<3x8xf32>, tensor<3x4xf32>)
  return %6#1 : tensor<3x4xf32>
}
"""
_TWO_GROUPS_OF_A_CONSTANT = """
func.func @main(%0: tensor<f32>) -> tensor<4xf32> {
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
  sdy.sharding_group %1 group_id=1 : tensor<4xf32>
  sdy.sharding_group %1 group_id=0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
_LOOP_WITHOUT_EDGES = """
func.func @main(%0: tensor<6x8xf32>)
    -> (tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}]>},
        tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"b"}, {}]>}) {
  %1 = stablehlo.while(%2 = %0) : tensor<6x8xf32> cond {
    %3 = stablehlo.custom_call @source() : () -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.add %0, %2 : tensor<6x8xf32>
    stablehlo.return %3 : tensor<6x8xf32>
  }
  %4 = stablehlo.abs %1 : tensor<6x8xf32>
  %5 = stablehlo.abs %0 : tensor<6x8xf32>
  %6 = stablehlo.negate %5 : tensor<6x8xf32>
  return %4, %6 : tensor<6x8xf32>, tensor<6x8xf32>
}
"""
# Shardy does not revisit the edge of %3 after the reshape has sharded %1, and the dead code shards it before.
_DEAD_CODE_THAT_HIDES_ANOTHER_MISTAKE = """
func.func @main(%0: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {"b", ?}]>}, %1: tensor<8x12xf32>) {
  %2 = sdy.named_computation<"part">(%0, %1) (%3: tensor<8x12xf32>, %4: tensor<8x12xf32>) {
    %5 = sdy.data_flow_edge %3 : tensor<8x12xf32>
    %6 = sdy.data_flow_edge %4 : tensor<8x12xf32>
    %7 = stablehlo.add %6, %5 : tensor<8x12xf32>
    %8 = stablehlo.abs %7 : tensor<8x12xf32>
    %9 = stablehlo.custom_call @source() : () -> tensor<f32>
    sdy.return %9 : tensor<f32>
  } : (tensor<8x12xf32>, tensor<8x12xf32>) -> tensor<f32>
  %10 = sdy.data_flow_edge %2 : tensor<f32>
  %11 = stablehlo.reshape %1 : (tensor<8x12xf32>) -> tensor<8x2x6xf32>
  %12 = sdy.sharding_constraint %11 <@m, [{}, {"a", ?}, {}]> : tensor<8x2x6xf32>
  return
}
"""


@pytest.fixture(scope="module")
def comparison() -> Iterator[Comparison]:
    """Returns a comparison of both sides."""
    with Shardy() as shardy:
        yield Comparison(shardy, Here())


@pytest.mark.parametrize(
    ("mistake", "name", "program"),
    [
        ("aborts_on_partial_results", _WHOLE, _ONE_PARTIAL_RESULT),
        ("aborts_on_exchanged_partial_axes", _WHOLE, _OTHER_PARTIAL_AXES),
        ("aborts_on_returned_arguments", _BASIC, _RETURNED_ARGUMENT),
        ("aborts_on_groups_that_meet", _BASIC, _TWO_GROUPS),
        ("declares_no_partial_results", f"{_WHOLE}{{dedup-functions-fully=true}}", _PARTIAL_RESULT_OF_A_CALL),
        ("declares_no_partial_results", _WHOLE, _UNREDUCED_RESULT_OF_A_FUNCTION),
        ("follows_order_of_uses", f"{_WHOLE}{{dedup-functions-fully=true}}", _TWO_USES_OF_AN_ARGUMENT),
        ("loses_members_of_groups", _WHOLE, _GROUP_OF_A_CONSTANT_CALL),
        ("takes_manual_axes", _BASIC, _MANUAL_AXES_THAT_HIDE_ANOTHER_MISTAKE),
        ("reorders_memberships", _SPLITTER, _TWO_GROUPS_OF_A_CONSTANT),
        ("forgets_arguments_without_edges", _BASIC, _LOOP_WITHOUT_EDGES),
        ("visits_dead_code", _BASIC, _DEAD_CODE_THAT_HIDES_ANOTHER_MISTAKE),
    ],
)
def test_a_mistake_is_recognised(comparison: Comparison, mistake: str, name: str, program: str) -> None:
    difference = comparison.difference(0, name, _MESH + program)[1]
    assert difference is not None
    assert mistake_of_shardy(difference, comparison) == mistake
