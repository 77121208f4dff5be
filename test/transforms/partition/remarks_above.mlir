// Tensors that are gathered for lack of a rule cause remarks, above a bound, on both targets and in Shardy's pipelines.

// RUN: shard-opt %s --spmd-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefixes=ALL,UNKNOWN
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo -o /dev/null 2>&1 | FileCheck %s --check-prefixes=ALL,UNKNOWN
// RUN: shard-opt %s --sdy-propagation-pipeline=enable-insert-explicit-collectives=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: shard-opt %s --shard-reshard -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALL

// The bound can be set, and `none` turns remarks off.
// RUN: shard-opt %s --spmd-pipeline='remarks-above=2097152' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOTHING --allow-empty
// RUN: shard-opt %s --spmd-pipeline='collectives=stablehlo remarks-above=none' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOTHING --allow-empty
// RUN: shard-opt %s --sdy-propagation-pipeline='enable-insert-explicit-collectives=true remarks-above=none' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOTHING --allow-empty
// RUN: shard-opt %s --spmd-pipeline='remarks-above=1023' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: shard-opt %s --spmd-pipeline='collectives=stablehlo remarks-above=1023' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SMALL

// NOTHING-NOT: remark

sdy.mesh @mesh = <["x"=2]>

// The second sort is isomorphic to the first.
// ALL-DAG: remarks_above.mlir:[[# @LINE + 4]]:8: remark: 'stablehlo.sort' op has operand 0 gathered along dimension 0, which its sharding rule requires to be unsharded; a device receives 2,097,152 bytes (2 ops, the first one here)
// SMALL: 'stablehlo.sort' op has operand 0
func.func @main(%a: tensor<1048576xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<1048576xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<1048576xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<1048576xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %2 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %1 = "stablehlo.sort"(%b) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %2 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<1048576xf32>) -> tensor<1048576xf32>
  return %0, %1 : tensor<1048576xf32>, tensor<1048576xf32>
}

// A reshape that merges the sharded dimension behind another one, and one whose parts the axis does not divide.
// ALL-DAG: remarks_above.mlir:[[# @LINE + 2]]:8: remark: 'stablehlo.reshape' op has operand 0 gathered along dimension 1, which it merges behind another dimension that is not sharded; a device receives 2,097,152 bytes
func.func @merged(%a: tensor<3x1024x512xf32>, %b: tensor<2x2048x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}) -> (tensor<4096x256xf32>, tensor<3072x512xf32>) {
  %0 = stablehlo.reshape %b : (tensor<2x2048x256xf32>) -> tensor<4096x256xf32>
  %1 = stablehlo.reshape %a : (tensor<3x1024x512xf32>) -> tensor<3072x512xf32>
  return %0, %1 : tensor<4096x256xf32>, tensor<3072x512xf32>
}
// ALL-DAG: remarks_above.mlir:[[# @LINE + 2]]:8: remark: 'stablehlo.reshape' op has operand 0 gathered along dimension 0, which it splits into 3 parts, not divisible by 2 shards; a device receives 1,572,864 bytes
func.func @split(%a: tensor<6x131072xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<3x2x131072xf32> {
  %0 = stablehlo.reshape %a : (tensor<6x131072xf32>) -> tensor<3x2x131072xf32>
  return %0 : tensor<3x2x131072xf32>
}

// An op without a rule is computed on gathered operands.
// UNKNOWN: remarks_above.mlir:[[# @LINE + 2]]:8: remark: 'stablehlo.custom_call' op is replicated on every device, as it has no {{partition|sharding}} rule; a device receives 2,097,152 bytes
func.func @unknown(%a: tensor<1048576xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<1048576xf32> {
  %0 = stablehlo.custom_call @whatever(%a) : (tensor<1048576xf32>) -> tensor<1048576xf32>
  return %0 : tensor<1048576xf32>
}

// A device receives less than the default bound.
// SMALL: remark: 'stablehlo.custom_call' op {{.*}}; a device receives 1,024 bytes
func.func @small(%a: tensor<512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<512xf32> {
  %0 = stablehlo.custom_call @whatever(%a) : (tensor<512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}
// UNKNOWN-NOT: remark:
