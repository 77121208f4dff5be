// RUN: shard-opt %s --verify-diagnostics --spmd-pipeline
// RUN: shard-opt %s --verify-diagnostics --spmd-pipeline=collectives=stablehlo

// Halos and reversed shards need axes of the grid, of which six of eight devices are not a part.
sdy.mesh @training = <["x"=8]>
sdy.mesh @serving = <["x"=6]>
func.func @main(%arg0: tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@training, [{"x"}, {}]>}) -> tensor<24x12xf32> {
  %0 = sdy.sharding_constraint %arg0 <@serving, [{}, {"x"}]> : tensor<24x12xf32>
  // expected-error@+1 {{it requires communication along axes of mesh <["x"=6]>, which is not part of the grid of all 8 devices of the program: gather the tensor first, or use a mesh that divides the devices evenly}}
  %r = stablehlo.reverse %0, dims = [1] : tensor<24x12xf32>
  return %r : tensor<24x12xf32>
}
