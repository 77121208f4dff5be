// RUN: shard-opt %s --split-input-file --sdy-add-func-data-flow-edges | FileCheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[CALL:.*]]:3 = call @callee(%arg0, %arg1, %arg0)
// CHECK-NEXT: %[[FIRST:.*]] = sdy.func_data_flow_edge %[[CALL]]#0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
// CHECK-NEXT: %[[THIRD:.*]] = sdy.func_data_flow_edge %[[CALL]]#2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>]>} : tensor<4xf32>
// CHECK-NEXT: %[[NEXT:.*]] = call @declared(%[[FIRST]])
// CHECK-NEXT: %[[EDGE:.*]] = sdy.func_data_flow_edge %[[NEXT]] : tensor<4xf32>
// CHECK-NEXT: return %[[EDGE]], %[[THIRD]]
func.func @main(%a: tensor<4xf32>, %token: !stablehlo.token) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:3 = call @callee(%a, %token, %a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, []>, <@mesh, [{?}]>]>} : (tensor<4xf32>, !stablehlo.token, tensor<4xf32>) -> (tensor<4xf32>, !stablehlo.token, tensor<4xf32>)
  %1 = call @declared(%0#0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %0#2 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @callee
// CHECK-NEXT: %[[FIRST:.*]] = sdy.func_data_flow_edge %arg0 : tensor<4xf32>
// CHECK-NEXT: %[[THIRD:.*]] = sdy.func_data_flow_edge %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
// CHECK-NEXT: return %[[FIRST]], %arg1, %[[THIRD]]
func.func private @callee(%a: tensor<4xf32>, %token: !stablehlo.token, %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<4xf32>, !stablehlo.token, tensor<4xf32>) {
  return %a, %token, %b : tensor<4xf32>, !stablehlo.token, tensor<4xf32>
}

func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

// -----

// A single function is the main function, whatever its name.
// CHECK-LABEL: func.func @only
// CHECK-NEXT: return %arg0
func.func @only(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

// A value of unknown shape has no edge.
// CHECK-LABEL: func.func private @dynamic
// CHECK-NEXT: return %arg0, %arg1
func.func private @dynamic(%a: tensor<?xf32>, %b: tensor<*xf32>) -> (tensor<?xf32>, tensor<*xf32>) {
  return %a, %b : tensor<?xf32>, tensor<*xf32>
}

func.func @main() {
  return
}
