// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// Sums and maxima over the devices of meshes that are not parts of a grid of nine: six, and the others, permuted.
// CHECK: @main on 9
// CHECK: <@serving, [{}]> {{.*}} OK
// CHECK: <@serving, [{}]> {{.*}} OK
// CHECK: <@serving, [{}, {"x"}]> {{.*}} OK
// CHECK: <@others, [{"x"}, {}]> {{.*}} OK
// CHECK: <@others, []> {{.*}} OK
sdy.mesh @serving = <["x"=2, "y"=3]>
sdy.mesh @others = <["x"=3], device_ids=[8, 6, 7]>
func.func @main(%arg0: tensor<5x12xf32> {sdy.sharding = #sdy.sharding<@serving, [{}, {"x", "y"}]>}, %i: tensor<12x7xi32> {sdy.sharding = #sdy.sharding<@others, [{}, {"x"}]>},
                %b: tensor<12xi1> {sdy.sharding = #sdy.sharding<@others, [{"x"}]>})
    -> (tensor<5xf32>, tensor<5xf32>, tensor<5x12xf32> {sdy.sharding = #sdy.sharding<@serving, [{}, {"x"}]>}, tensor<12x7xi32> {sdy.sharding = #sdy.sharding<@others, [{"x"}, {}]>}, tensor<i1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %r = stablehlo.reduce(%arg0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<5x12xf32>, tensor<f32>) -> tensor<5xf32>
  %x = stablehlo.reduce(%arg0 init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<5x12xf32>, tensor<f32>) -> tensor<5xf32>
  %s = stablehlo.iota dim = 1 : tensor<5x12xf32>
  %t = stablehlo.add %s, %arg0 : tensor<5x12xf32>
  %q = stablehlo.dot_general %i, %i, contracting_dims = [1] x [1] : (tensor<12x7xi32>, tensor<12x7xi32>) -> tensor<12x12xi32>
  %p = stablehlo.dot_general %q, %i, contracting_dims = [1] x [0] : (tensor<12x12xi32>, tensor<12x7xi32>) -> tensor<12x7xi32>
  %any = stablehlo.reduce(%b init: %false) applies stablehlo.or across dimensions = [0] : (tensor<12xi1>, tensor<i1>) -> tensor<i1>
  return %r, %x, %t, %p, %any : tensor<5xf32>, tensor<5xf32>, tensor<5x12xf32>, tensor<12x7xi32>, tensor<i1>
}
