// RUN: shard-opt %s --verify-diagnostics --spmd-pipeline
// RUN: shard-opt %s --verify-diagnostics --spmd-pipeline=collectives=stablehlo

// A callback, such as JAX's for printing, is on one device, of a mesh without axes, and has no result.
sdy.mesh @device = <[], device_ids=[0]>
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  // expected-error@+1 {{'stablehlo.custom_call:callback' cannot be partitioned: it behaves differently on each device}}
  stablehlo.custom_call @callback(%c) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<f32>) -> ()
  return %arg0 : tensor<8xf32>
}
