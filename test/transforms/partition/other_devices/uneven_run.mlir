// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// Uneven shards on both sides, and a scalar.
sdy.mesh @a = <["x"=4]>
sdy.mesh @b = <["x"=3], device_ids=[6, 5, 4]>
// CHECK: @main on 7
// CHECK: <@b, [{}, {{.*}}]> {{.*}} OK
// CHECK: <@b, []> {{.*}} OK
func.func @main(%arg0: tensor<7x5xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}, {}]>}, %s: tensor<f32> {sdy.sharding = #sdy.sharding<@a, []>}) -> (tensor<7x5xf32>, tensor<f32>) {
  %m = stablehlo.add %arg0, %arg0 : tensor<7x5xf32>
  %0 = sdy.sharding_constraint %m <@b, [{}, {"x"}]> : tensor<7x5xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<7x5xf32>
  %2 = sdy.sharding_constraint %s <@b, []> : tensor<f32>
  %3 = stablehlo.add %2, %2 : tensor<f32>
  return %1, %3 : tensor<7x5xf32>, tensor<f32>
}
