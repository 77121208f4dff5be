// RUN: shard-opt %s --sdy-add-data-flow-edges | FileCheck %s

sdy.mesh @m = <["x"=2, "y"=2]>

// The edges follow the op directly, in the order of its results, and have the shardings of the results.
// CHECK-LABEL: func.func @results
// CHECK: %[[B:.*]]:3 = stablehlo.optimization_barrier
// CHECK-NEXT: %[[E:.*]] = sdy.data_flow_edge %[[B]]#0 sharding=<@m, [{"x"}]> : tensor<8xf32>
// CHECK-NEXT: %[[F:.*]] = sdy.data_flow_edge %[[B]]#1 sharding=<@m, [{?}]> : tensor<6xf32>
// CHECK-NEXT: return %[[E]], %[[F]], %[[B]]#2
func.func @results(%a: tensor<8xf32>, %b: tensor<6xf32>, %c: tensor<?xf32>) -> (tensor<8xf32>, tensor<6xf32>, tensor<?xf32>) {
  %0:3 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>, <@m, [{?}]>, <@m, [{?}]>]>} %a, %b, %c : tensor<8xf32>, tensor<6xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2 : tensor<8xf32>, tensor<6xf32>, tensor<?xf32>
}

// In a manual computation, the shardings of edges omit the manual axes; a token has no edge.
// CHECK-LABEL: func.func @arguments
// CHECK: sdy.manual_computation
// CHECK-SAME: (%[[A:arg[0-9]+]]: tensor<4xf32>, %[[T:arg[0-9]+]]: !stablehlo.token)
// CHECK-NEXT: %[[E:.*]] = sdy.data_flow_edge %[[A]] sharding=<@m, [{"y"}]> : tensor<4xf32>
// CHECK-NEXT: sdy.return %[[E]], %[[T]]
// CHECK: sdy.data_flow_edge {{.*}} sharding=<@m, [{"x", ?}]> : tensor<8xf32>
func.func @arguments(%a: tensor<8xf32>, %t: !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token) {
  %0:2 = sdy.manual_computation(%a, %t) in_shardings=[<@m, [{"x", "y"}]>, <@m, []>] out_shardings=[<@m, [{"x", ?}]>, <@m, []>] manual_axes={"x"} (%b: tensor<4xf32>, %u: !stablehlo.token) {
    sdy.return %b, %u : tensor<4xf32>, !stablehlo.token
  } : (tensor<8xf32>, !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token)
  return %0#0, %0#1 : tensor<8xf32>, !stablehlo.token
}

// A nested op has its own edges; the loop carries tensors of rank 0 instead of scalars, and these have edges.
// CHECK-LABEL: func.func @nested
// CHECK: stablehlo.while
// CHECK: %[[IF:.*]] = "stablehlo.case"
// CHECK: %[[INNER:.*]] = sdy.data_flow_edge %[[IF]]
// CHECK-NEXT: stablehlo.return %[[INNER]]
// CHECK: sdy.data_flow_edge {{.*}}#0 : tensor<8xf32>
// CHECK-NEXT: sdy.data_flow_edge {{.*}}#1 : tensor<i32>
func.func @nested(%a: tensor<8xf32>, %n: tensor<i32>, %p: tensor<i1>) -> tensor<8xf32> {
  %0:2 = stablehlo.while(%x = %a, %i = %n) : tensor<8xf32>, tensor<i32>
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = "stablehlo.case"(%i) ({
      stablehlo.return %x : tensor<8xf32>
    }, {
      stablehlo.return %a : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>
    stablehlo.return %1, %i : tensor<8xf32>, tensor<i32>
  }
  return %0#0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @scf
// CHECK: %[[R:.*]] = scf.for
// CHECK: %[[E:.*]] = sdy.data_flow_edge %[[R]] : tensor<8xf32>
// CHECK-NEXT: return %[[E]]
func.func @scf(%a: tensor<8xf32>, %l: index, %u: index, %s: index) -> tensor<8xf32> {
  %0 = scf.for %i = %l to %u step %s iter_args(%x = %a) -> tensor<8xf32> {
    %1 = math.exp %x : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
