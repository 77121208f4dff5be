# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Valid programs that a pass made invalid, or whose printed text was not parsed to the same module."""

from __future__ import annotations

import pytest

from fuzzed_programs.outcome import DONE, REFUSED, Runner
from fuzzed_programs.pipelines import pipelines

MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>\n'
FULL = "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}))"

WHILE = (
    MESH
    + """
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %n: tensor<i32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %most = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<8xf32> cond {
    %1 = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.add %v, %v : tensor<8xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}"""
)
NON_DIVISIBLE = (
    MESH
    + """
func.func @main(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<7xf32> {
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@m, [{"x"}]> : tensor<7xf32>
  return %0 : tensor<7xf32>
}"""
)
NAMED_BY_OPERATIONS = (
    MESH
    + """
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.reshard %a <@m, [{}]> : tensor<8xf32>
  %1 = sdy.named_computation<"f">(%0) in_shardings=[<@m, [{"y"}]>] (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}"""
)
PRIORITY_OF_MANUAL_AXES = (
    MESH
    + """
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}, {"y"}p1]>] out_shardings=[<@m, [{"x"}, {"y"}]>]
      manual_axes={"x", "y"} (%b: tensor<2x4xf32>) {
    sdy.return %b : tensor<2x4xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""
)
REPLICATED = (
    MESH
    + """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %a
      {sdy.sharding = #sdy.sharding_per_value<[<@m, [{?}, {}], replicated={"x"}>]>} : tensor<8x8xf32>
  %1 = stablehlo.add %0, %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""
)
CONSTANT_OPERAND = (
    MESH
    + """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> tensor<64xf32> {
  %s = tosa.const_shape {values = dense<64> : tensor<1xindex>} : () -> !tosa.shape<1>
  %0 = tosa.reshape %a, %s : (tensor<8x8xf32>, !tosa.shape<1>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}"""
)
EMPTY_MESH = """
sdy.mesh @m = <[]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
DYNAMIC = (
    MESH
    + """
func.func @main(%a: tensor<?x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> tensor<?x8xf32> {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {"y"}]>]>} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}"""
)
UNREDUCED = (
    MESH
    + """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced={"x"}>},
                %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""
)


PRIORITY_OF_SIZE_ONE_AXIS = """
sdy.mesh @m = <["x"=2, "one"=1]>
sdy.mesh @other = <["z"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"one"}p3]>},
                %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{"z"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
MANY_DEVICES_INLINE = """
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=1073741824]>, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


ALL_REDUCE = """
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a", ?}, {?}]>]>} : tensor<8x8xf32>
  %1 = sdy.all_reduce {"c"} %0 out_sharding=<@m, [{"a", ?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""
RESULT_OF_ALL_REDUCE = """
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {"b", ?}]>}) {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{?}, {}]>]>} : tensor<8x8xf32>
  %1 = sdy.all_reduce {"c"} %0 out_sharding=<@m, [{?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""
FUNC_EDGES = (
    MESH
    + """
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.func_data_flow_edge %0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y"}]>]>} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f(%y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.func_data_flow_edge %y {sdy.sharding = #sdy.sharding_per_value<[<@m, [{?}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
)
OPEN_RESULT_OF_MANUAL = """
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8x8xf32>) -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"x", ?}]>}) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}, {}]>] out_shardings=[<@m, [{?}, {?}]>] manual_axes={"x"}
      (%b: tensor<4x8xf32>) {
    sdy.return %b : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""
EMPTY_MESH_OF_MANUAL = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<mesh<["x"=2]>, [{"x"}]>] out_shardings=[<mesh<[]>, [{?}]>]
      manual_axes={"x"} (%b: tensor<4xf32>) {
    %1 = stablehlo.concatenate %b, %b, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
TWO_ORDERS = """
sdy.mesh @m = <["x"=2, "y"=2]>
sdy.mesh @reversed = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"x"}, {"y"}]>}) -> tensor<f32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x", ?}, {}]>] out_shardings=[<@m, [], replicated={"x"}>]
      manual_axes={"x"} (%b: tensor<4x8xf32>) {
    %1 = stablehlo.constant dense<0.0> : tensor<f32>
    sdy.return %1 : tensor<f32>
  } : (tensor<8x8xf32>) -> tensor<f32>
  %2 = stablehlo.negate %0 : tensor<f32>
  return %2 : tensor<f32>
}"""
NAMED = (
    MESH
    + """
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}) -> tensor<8xf32> {
  %0 = sdy.named_computation<"f">(%a) in_shardings=[<@m, [{"x", "y"}]>] out_shardings=[<@m, [{"x", "y"}]>]
      (%b: tensor<8xf32>) {
    %1 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x", "y"}]>]>} : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
)
SOME_DEVICES = """
sdy.mesh @first = <["x"=2]>
sdy.mesh @others = <["x"=2], device_ids=[3, 2]>
func.func @main(%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@others, [{}, {"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [1]
      : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}"""
EMPTY_TABLE = """
#row = affine_map<(d0) -> (d0)>
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<0x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %b: tensor<0xi32>)
    -> tensor<0xf32> {
  %0 = tensor.empty() : tensor<0xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%b : tensor<0xi32>) outs(%0 : tensor<0xf32>) {
  ^bb0(%label: i32, %out: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %label : i32 to index
    %v = tensor.extract %a[%i, %j] : tensor<0x16xf32>
    linalg.yield %v : f32
  } -> tensor<0xf32>
  return %1 : tensor<0xf32>
}"""
CONCAT = """
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x5xf32>) -> tensor<2x4xf32> {
  %0 = tensor.cast %a : tensor<2x3xf32> to tensor<2x?xf32>
  %1 = tensor.cast %b : tensor<2x5xf32> to tensor<2x?xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}"""


NO_ELEMENTS = (
    MESH
    + """
func.func @main(%a: tensor<0x4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"x"}]>})
    -> (tensor<0x4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}, {}]>}) {
  %0 = tensor.empty() : tensor<0x4x8xf32>
  %1 = linalg.abs ins(%a : tensor<0x4x8xf32>) outs(%0 : tensor<0x4x8xf32>) -> tensor<0x4x8xf32>
  return %1 : tensor<0x4x8xf32>
}"""
)


@pytest.mark.parametrize(
    ("program", "pipeline", "kind"),
    [
        (WHILE, "builtin.module(sdy-per-instruction-partitioning)", DONE),
        (WHILE.replace("%i, %most", "%i, %n"), "builtin.module(sdy-per-instruction-partitioning)", REFUSED),
        (CONSTANT_OPERAND, "builtin.module(sdy-per-instruction-partitioning)", REFUSED),
        (NON_DIVISIBLE, "builtin.module(sdy-propagation-pipeline)", DONE),
        (NAMED_BY_OPERATIONS, "builtin.module(sdy-drop-sharding-and-mesh)", DONE),
        (PRIORITY_OF_MANUAL_AXES, "builtin.module(sdy-propagation-pipeline)", DONE),
        (REPLICATED, FULL, DONE),
        (REPLICATED, "builtin.module(shard-reshard)", DONE),
        (MANY_DEVICES_INLINE, "builtin.module(func.func(sdy-insert-explicit-reshards{planner=optimal}))", REFUSED),
        (MANY_DEVICES_INLINE, "builtin.module(shard-propagate,shard-spmdize)", REFUSED),
        (PRIORITY_OF_SIZE_ONE_AXIS, "builtin.module(shard-unify-meshes)", DONE),
        (UNREDUCED, FULL, DONE),
        (UNREDUCED, "builtin.module(shard-propagate,shard-spmdize)", DONE),
        (NAMED, "builtin.module(sdy-per-instruction-partitioning)", DONE),
        (SOME_DEVICES, "builtin.module(sdy-per-instruction-partitioning)", REFUSED),
        (EMPTY_TABLE, "builtin.module(shard-propagate,shard-spmdize)", DONE),
        (NO_ELEMENTS, "builtin.module(spmd-pipeline)", DONE),
    ],
)
def test_what_passes_made_invalid(program: str, pipeline: str, kind: str) -> None:
    outcome = Runner().run(program.encode(), pipeline)
    assert outcome.kind == kind, outcome.detail


@pytest.mark.parametrize(
    "program",
    [
        EMPTY_MESH,
        DYNAMIC,
        ALL_REDUCE,
        RESULT_OF_ALL_REDUCE,
        FUNC_EDGES,
        OPEN_RESULT_OF_MANUAL,
        EMPTY_MESH_OF_MANUAL,
        TWO_ORDERS,
        CONCAT,
    ],
    ids=[
        "empty mesh",
        "dynamic",
        "all-reduce",
        "result of all-reduce",
        "edges",
        "open result",
        "empty mesh of manual",
        "two orders",
        "concat",
    ],
)
def test_every_pass(program: str) -> None:
    runner = Runner()
    outcomes = {pipeline: runner.run(program.encode(), pipeline) for pipeline in pipelines()}
    wrong = {pipeline: one for pipeline, one in outcomes.items() if one.kind not in (DONE, REFUSED)}
    assert not wrong
    assert sum(one.kind == DONE for one in outcomes.values()) > 0.7 * len(outcomes)
