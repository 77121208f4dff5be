// RUN: shard-opt %s --sdy-sink-data-flow-edges | FileCheck %s
// RUN: shard-opt %s --sdy-sink-data-flow-edges="sink-debug-sharding-origins=true sink-debug-propagation-edge-sharding=true" | FileCheck %s --check-prefix=DEBUG

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @results
// CHECK-NEXT: %[[OUT:.*]]:3 = stablehlo.optimization_barrier
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>, <@mesh, [{"x"}, {}]>, <@mesh, []>]>}
// CHECK-NEXT: return %[[OUT]]#0, %[[OUT]]#1
// DEBUG-LABEL: func.func @results
// DEBUG-NEXT: stablehlo.optimization_barrier
// DEBUG-SAME: sdy.block_arg_propagation_edges = [], sdy.block_arg_sharding_origins = []
// DEBUG-SAME: sdy.result_propagation_edges = [], sdy.result_sharding_origins = [{x = "self"}]
func.func @results(%a: tensor<8x8xf32>, %token: !stablehlo.token) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0:3 = stablehlo.optimization_barrier %a, %a, %token : tensor<8x8xf32>, tensor<8x8xf32>, !stablehlo.token
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  %2 = sdy.data_flow_edge %0#1 sharding=<@mesh, [{"x"}, {}]> {sdy.sharding_origins = {x = "self"}} : tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// Edges without shardings do not change existing shardings.
// CHECK-LABEL: func.func @unsharded
// CHECK-NEXT: %[[OUT:.*]] = stablehlo.optimization_barrier %arg0 : tensor<8x8xf32>
// CHECK-NEXT: return %[[OUT]]
func.func @unsharded(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.optimization_barrier %a : tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// The manual axes of the body stay, and precede the axes that propagation has added in the body.
// CHECK-LABEL: func.func @manual
// CHECK-NEXT: %[[OUT:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", "y", ?}, {?}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT:   %[[IN:.*]] = sdy.named_computation<"f">(%arg1) in_shardings=[<@mesh, [{"y"}, {}]>] (%arg2: tensor<4x8xf32>) {
// CHECK-NEXT:     sdy.return %arg2
// CHECK-NEXT:   }
// CHECK-NEXT:   sdy.return %[[IN]]
// DEBUG-LABEL: func.func @manual
// DEBUG: } {sdy.block_arg_propagation_edges = [#sdy.propagation_edges<[{step-0 = [{"y" = operand-0 -> [result-0]}]}]>], sdy.block_arg_sharding_origins = [{y = "input: 0"}], sdy.result_propagation_edges = [], sdy.result_sharding_origins = []}
func.func @manual(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"} (%arg: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %arg sharding=<@mesh, [{"y", ?}, {?}]> {sdy.sharding_origins = {y = "input: 0"}, sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"y" = operand-0 -> [result-0]}]}]>} : tensor<4x8xf32>
    %3 = sdy.named_computation<"f">(%2) (%inner: tensor<4x8xf32>) {
      %5 = sdy.data_flow_edge %inner sharding=<@mesh, [{"y"}, {}]> : tensor<4x8xf32>
      sdy.return %5 : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %4 = sdy.data_flow_edge %3 : tensor<4x8xf32>
    sdy.return %4 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Loops of other dialects are handled like those of StableHLO.
// CHECK-LABEL: func.func @scf_for
// CHECK: %[[OUT:.*]] = scf.for %{{.*}} iter_args(%[[ITER:.*]] = %arg0)
// CHECK-NEXT: stablehlo.abs %[[ITER]]
// CHECK: } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>]>}
// CHECK-NEXT: return %[[OUT]]
func.func @scf_for(%a: tensor<8x8xf32>, %n: index) -> tensor<8x8xf32> {
  %0 = scf.for %i = %n to %n step %n iter_args(%iter = %a) -> tensor<8x8xf32> {
    %2 = stablehlo.abs %iter : tensor<8x8xf32>
    scf.yield %2 : tensor<8x8xf32>
  }
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
