// RUN: shard-opt %s --split-input-file --verify-diagnostics --spmd-pipeline
// RUN: shard-opt %s --split-input-file --verify-diagnostics --spmd-pipeline=collectives=stablehlo

// The columns are on six of eight devices, which no collective is along.
sdy.mesh @training = <["x"=8]>
sdy.mesh @serving = <["x"=6]>
func.func @main(%arg0: tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@training, [{"x"}, {}]>}) -> tensor<24xf32> {
  %0 = sdy.sharding_constraint %arg0 <@serving, [{}, {"x"}]> : tensor<24x12xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{'sdy.all_reduce' cannot be partitioned: it would be reduced over devices of mesh <["x"=6]>, which is no part of a grid of all 8 devices of the program: let its axes divide these}}
  %r = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x12xf32>, tensor<f32>) -> tensor<24xf32>
  return %r : tensor<24xf32>
}
