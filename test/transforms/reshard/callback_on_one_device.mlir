// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo | FileCheck %s

// A callback, as JAX makes one for printing, says on which device it is and has no result.
sdy.mesh @device = <[], device_ids=[0]>
sdy.mesh @mesh = <["x"=2]>
// CHECK: stablehlo.custom_call @callback(%{{.*}}) {has_side_effect = true} : (tensor<f32>) -> ()
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  stablehlo.custom_call @callback(%c) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<f32>) -> ()
  return %arg0 : tensor<8xf32>
}
