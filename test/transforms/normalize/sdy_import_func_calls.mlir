// RUN: shard-opt %s --split-input-file --sdy-import-func-calls | FileCheck %s
// RUN: shard-opt %s --split-input-file --sdy-import-func-calls="add-data-flow-edges-on-named-computations=false" | FileCheck %s --check-prefix=PLAIN

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[FIRST:.*]] = sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{"x"}]>] (%arg1: tensor<4xf32>) {
// CHECK-NEXT:   %[[IN:.*]] = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"x"}]>
// CHECK-NEXT:   %[[NESTED:.*]] = sdy.named_computation<"g">(%[[IN]])
// CHECK-NEXT:     %[[EDGE:.*]] = sdy.data_flow_edge
// CHECK-NEXT:     %[[ABS:.*]] = stablehlo.abs %[[EDGE]]
// CHECK-NEXT:     sdy.return %[[ABS]]
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[OUT:.*]] = sdy.data_flow_edge %[[NESTED]] : tensor<4xf32>
// CHECK-NEXT:   sdy.return %[[OUT]]
// CHECK-NEXT: } {execution_thread = "host", note = 1 : i64}
// CHECK-NEXT: %[[EDGE:.*]] = sdy.data_flow_edge %[[FIRST]] : tensor<4xf32>
// CHECK-NEXT: %[[SECOND:.*]] = sdy.named_computation<"f">(%[[EDGE]]) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{?}]>]
// CHECK:        sdy.named_computation<"g">
// CHECK:      sdy.data_flow_edge %[[SECOND]] sharding=<@mesh, [{?}]>
// CHECK-NOT: func.func

// PLAIN-LABEL: func.func @main
// PLAIN-NOT: sdy.data_flow_edge
// PLAIN: sdy.named_computation<"g">
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f(%a) {note = 1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>]>} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @f(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> attributes {execution_thread = "host"} {
  %0 = call @g_7(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @g_7(%a: tensor<4xf32>) -> tensor<4xf32> attributes {sdy.original_func_name = "g"} {
  %0 = stablehlo.abs %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A declared function has no body to import.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @declared
// CHECK: func.func private @declared
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @declared(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

// -----

// A named computation that has its edges is not changed; values of several types come in runs.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[FIRST:.*]]:2 = sdy.named_computation<"mixed">(%arg0, %arg1)
// CHECK: %[[EDGE:.*]] = sdy.data_flow_edge %[[FIRST]]#0 : tensor<4xf32>
// CHECK-NEXT: %[[SECOND:.*]] = sdy.named_computation<"there">(%[[EDGE]]) (%arg2: tensor<4xf32>) {
// CHECK-NEXT:   %[[IN:.*]] = sdy.data_flow_edge %arg2 : tensor<4xf32>
// CHECK-NEXT:   sdy.return %[[IN]]
// CHECK-NEXT: } : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[OUT:.*]] = sdy.data_flow_edge %[[SECOND]] : tensor<4xf32>
// CHECK-NEXT: return %[[OUT]], %[[FIRST]]#1
func.func @main(%a: tensor<4xf32>, %token: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %0:2 = call @mixed(%a, %token) : (tensor<4xf32>, !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %1 = sdy.named_computation<"there">(%0#0) (%arg: tensor<4xf32>) {
    %2 = sdy.data_flow_edge %arg : tensor<4xf32>
    sdy.return %2 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %0#1 : tensor<4xf32>, !stablehlo.token
}

func.func private @mixed(%a: tensor<4xf32>, %token: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  return %a, %token : tensor<4xf32>, !stablehlo.token
}
