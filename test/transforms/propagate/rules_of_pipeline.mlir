// RUN: shard-opt %s --split-input-file --sdy-propagation-pipeline | FileCheck %s
// RUN: shard-opt %s --split-input-file --sdy-user-priority-propagate=keep-particular-rules=true | FileCheck %s --check-prefix=KEPT

// The rule of a concatenation depends on whether its operands are parts of one tensor. During propagation, the two uses
// of the broadcast are two tensors, as in Shardy, and later passes keep the rule from propagation.
sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func.func @merged_operands(
// CHECK: %[[ZERO:.*]] = stablehlo.broadcast_in_dim
// CHECK-NOT: stablehlo.broadcast_in_dim
// CHECK: %[[SLICE:.*]] = stablehlo.slice %[[ZERO]]
// CHECK: %[[A:.*]] = sdy.reshard %[[ZERO]] <@mesh, [{}, {"x"}]>
// CHECK: %[[B:.*]] = sdy.reshard %[[SLICE]] <@mesh, [{}, {"x"}]>
// CHECK: %[[ALL:.*]] = stablehlo.concatenate %[[A]], %[[B]], dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} :
// CHECK: sdy.reshard %[[ALL]] <@mesh, [{"x"}, {}]>
// KEPT-LABEL: func.func @merged_operands(
// KEPT: stablehlo.broadcast_in_dim
// KEPT-NOT: sdy.sharding_rule
// KEPT: stablehlo.slice
// KEPT: stablehlo.concatenate
// KEPT-SAME: permutation={i}>
func.func @merged_operands() -> tensor<2x8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<f32>) -> tensor<1x8xf32>
  %2 = stablehlo.slice %1 [0:1, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// -----

// A given rule also applies to reshards.
sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func.func @given_rule(
// CHECK: stablehlo.concatenate
// CHECK-SAME: [{"y"}, {"x"}]
// CHECK-NOT: sdy.sharding_rule
// KEPT-LABEL: func.func @given_rule(
// KEPT: sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}>
func.func @given_rule(%0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                      %1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}>}
    : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
