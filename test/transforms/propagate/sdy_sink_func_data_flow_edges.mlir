// RUN: shard-opt %s --sdy-sink-func-data-flow-edges | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func private @callee
// CHECK-SAME: (%arg0: tensor<4xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg2: tensor<4xf32>, %arg3: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})
// CHECK-NEXT: stablehlo.add %arg0, %arg1
// CHECK-NEXT: return %arg2, %{{.*}}
func.func private @callee(%a: tensor<4xf32> {jax.note}, %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %c: tensor<4xf32>,
                          %d: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = sdy.func_data_flow_edge %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
  // An edge whose sharding propagation has removed leaves its argument open.
  %1 = sdy.func_data_flow_edge %b : tensor<4xf32>
  %2 = sdy.func_data_flow_edge %c : tensor<4xf32>
  %3 = stablehlo.add %0, %1 : tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[CALL:.*]]:2 = call @callee(%arg0, %arg0, %arg0, %arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>, <@mesh, [{"y"}]>]>}
// CHECK-NEXT: return %[[CALL]]#0, %[[CALL]]#1
func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = call @callee(%a, %a, %a, %a) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1 = sdy.func_data_flow_edge %0#0 : tensor<4xf32>
  %2 = sdy.func_data_flow_edge %0#1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
