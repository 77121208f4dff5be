// RUN: shard-opt %s --sdy-drop-sharding-rules | FileCheck %s

// A user's rule of an op without a registered rule stays.
// CHECK: stablehlo.negate %arg0 {note} : tensor<4xf32>
// CHECK: stablehlo.custom_call @mine(%0)
// CHECK-SAME: sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=4}, custom>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a {note, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=4}>} : tensor<4xf32>
  %1 = stablehlo.custom_call @mine(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=4}, custom>} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
