// RUN: shard-run %s | FileCheck %s

// Two isomorphic sums of uneven shards, the second of the result of the first: each masks its shards.
// CHECK: tensor<7xf32> {{.*}} OK
sdy.mesh @m = <["x"=2, "y"=3]>
func.func @main(%a: tensor<9x7xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> tensor<7xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<9x7xf32>, tensor<f32>) -> tensor<7xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<7xf32>) -> tensor<9x7xf32>
  %2 = stablehlo.subtract %a, %1 : tensor<9x7xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<9x7xf32>, tensor<f32>) -> tensor<7xf32>
  return %3 : tensor<7xf32>
}
