// RUN: shard-opt %s --sdy-remove-propagation-debug-info | FileCheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK: func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<4xf32>) -> (tensor<4xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
// CHECK-NEXT: stablehlo.add %arg0, %arg1 {note, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} :
// CHECK-NEXT: stablehlo.optimization_barrier
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: sdy.named_computation
// CHECK-NEXT:   stablehlo.abs %{{.*}} : tensor<4xf32>
// CHECK-NEXT:   sdy.return
// CHECK-NEXT: } {sdy.sharding_origin_name = "kept"} :
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, sdy.sharding_origins = {x = "self"}},
                %b: tensor<4xf32> {sdy.sharding_origins = {}})
    -> (tensor<4xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"x" = operand-0 -> [result-0]}]}]>}) {
  %0 = stablehlo.add %a, %b {note, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, sdy.sharding_origins = [{x = "input: 0"}], sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>} : tensor<4xf32>
  %1 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, sdy.result_sharding_origins = [{x = "input: 0"}], sdy.result_propagation_edges = [], sdy.block_arg_sharding_origins = [], sdy.block_arg_propagation_edges = []} %0 : tensor<4xf32>
  %2 = sdy.named_computation<"n">(%1) (%arg: tensor<4xf32>) {
    %3 = stablehlo.abs %arg {sdy.sharding_origins = [{}]} : tensor<4xf32>
    sdy.return %3 : tensor<4xf32>
  } {sdy.sharding_origin_name = "kept", sdy.block_arg_sharding_origins = [{x = "self"}]} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
