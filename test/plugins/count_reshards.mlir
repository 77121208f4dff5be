// RUN: shard-opt %s --load %examples/count_reshards.py --count-reshards | FileCheck %s
// RUN: not shard-opt %s --load %examples/count_reshards.py --count-reshards=limit=1 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: shard-opt --help=all --load %examples/count_reshards.py | FileCheck %s --check-prefix=HELP

// HELP: --count-reshards {{ *}}- Count the reshards of each function [func.func]
// HELP-NEXT: limit {{ *}}- fail where a function holds more than this (an integer or none

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK: func.func @one{{.*}} attributes {reshards = 1 : i64}
func.func @one(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK: func.func @two{{.*}} attributes {reshards = 2 : i64}
// LIMIT: count_reshards.mlir:[[# @LINE + 1]]:1: error: function holds 2 reshards; at most 1 are allowed
func.func @two(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<4x4xf32>
  // LIMIT: count_reshards.mlir:[[# @LINE + 1]]:8: note: one reshard too many
  %1 = sdy.reshard %0 <@mesh, [{"x"}, {"y"}]> : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
