// RUN: shard-opt %s --verify-diagnostics --spmd-pipeline
// RUN: shard-opt %s --verify-diagnostics --spmd-pipeline=collectives=stablehlo

// A sum over a dimension that is sharded along one sub-axis is not partial along the other one.
sdy.mesh @mesh = <["z"=12]>
func.func @main(%a: tensor<24x36xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"z":(1)4}]>}) -> tensor<24xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error @+1 {{result 0 is declared unreduced along}}
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x36xf32>, tensor<f32>) -> tensor<24xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}], unreduced={"z":(1)6}> : tensor<24xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}]> : tensor<24xf32>
  return %2 : tensor<24xf32>
}
