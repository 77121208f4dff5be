// RUN: shard-opt %s --sdy-aggressive-propagate=propagation-strategy=aggressive | FileCheck %s
// RUN: shard-opt %s --sdy-user-priority-propagate | FileCheck %s

// An operand of a loop takes the sharding of the loop's result before the operations in the loop are visited: the
// operation in this loop would shard its result along the other dimension.
sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}]>},
// CHECK: stablehlo.dot_general %iterArg, %iterArg
// CHECK-SAME: <@mesh, [{?}, {"x", ?}]>
// CHECK: sdy.data_flow_edge
// CHECK-SAME: <@mesh, [{?}, {"x", ?}]>
func.func @main(%0: tensor<8x8xf32>, %1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %2 = stablehlo.while(%3 = %0) : tensor<8x8xf32> cond {
    %6 = stablehlo.custom_call @source() : () -> tensor<i1>
    stablehlo.return %6 : tensor<i1>
  } do {
    %6 = stablehlo.dot_general %3, %3, contracting_dims = [0] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %6 : tensor<8x8xf32>
  }
  %4 = sdy.data_flow_edge %2 : tensor<8x8xf32>
  %5 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}
