// RUN: shard-opt %s --split-input-file --verify-diagnostics --shard-exchange-between-meshes

sdy.mesh @a = <["x"=4]>
sdy.mesh @b = <["x"=2]>
func.func @main(%arg0: tensor<?x8xf32> {sdy.sharding = #sdy.sharding<@a, [{}, {"x"}]>}) -> tensor<?x8xf32> {
  // expected-error@+1 {{a value of type tensor<?x8xf32> cannot be exchanged from mesh @a (4 devices) to mesh @b (2 devices): only tensors of static shape are supported}}
  %0 = sdy.reshard %arg0 <@b, [{}, {"x"}]> : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

sdy.mesh @a = <["x"=4]>
sdy.mesh @b = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{}], unreduced={"x"}>}) -> tensor<8xf32> {
  // expected-error@+1 {{partial values require one mesh, got <["x"=4]> and <["x"=2]>: reduce them on the first mesh}}
  %0 = sdy.reshard %arg0 <@b, [{"x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
