// RUN: shard-opt %s --sdy-export-named-computations | FileCheck %s
// RUN: shard-opt %s --sdy-export-named-computations=shard-function-results=true | FileCheck %s --check-prefix=RESULTS

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[TAKEN:.*]] = call @taken_0(%arg0) {note, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: %[[OUTER:.*]]:2 = call @outer(%[[TAKEN]], %arg1) : (
// CHECK-NEXT: return %[[OUTER]]#0
func.func @main(%a: tensor<4xf32>, %token: !stablehlo.token) -> tensor<4xf32> {
  // The shardings of the edges count, and not those from before propagation.
  %0 = sdy.named_computation<"taken">(%a) in_shardings=[<@mesh, [{?}]>] out_shardings=[<@mesh, [{?}]>] (%arg: tensor<4xf32>) {
    %2 = sdy.data_flow_edge %arg sharding=<@mesh, [{}]> : tensor<4xf32>
    %3 = stablehlo.abs %2 : tensor<4xf32>
    sdy.return %3 : tensor<4xf32>
  } {note, execution_thread = "host"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}]> : tensor<4xf32>
  %4:2 = sdy.named_computation<"outer">(%1, %token) (%arg: tensor<4xf32>, %inner_token: !stablehlo.token) {
    %5 = sdy.named_computation<"inner">(%arg) (%inner: tensor<4xf32>) {
      sdy.return %inner : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %5, %inner_token : tensor<4xf32>, !stablehlo.token
  } : (tensor<4xf32>, !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %4#0 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @taken(
func.func private @taken(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// CHECK: func.func private @taken_0(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<4xf32>
// CHECK-SAME: attributes {execution_thread = "host", sdy.original_func_name = "taken"}
// CHECK-NEXT: %[[ABS:.*]] = stablehlo.abs %arg0
// CHECK-NEXT: return %[[ABS]]
// Inner computations come first.
// CHECK: func.func private @inner(%arg0: tensor<4xf32>)
// CHECK: func.func private @outer(%arg0: tensor<4xf32>, %arg1: !stablehlo.token)
// CHECK-NEXT: %[[INNER:.*]] = call @inner(%arg0)
// CHECK-NEXT: return %[[INNER]], %arg1

// If a function's results have the shardings of the call, no reshard is needed between them.
// RESULTS-LABEL: func.func private @taken_0
// RESULTS-SAME: -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// RESULTS-LABEL: func.func private @outer(%arg0: tensor<4xf32>, %arg1: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
