// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// The devices of the last stage are in another order, and all stages use the bias.
sdy.mesh @s0 = <["x"=2]>
sdy.mesh @s1 = <["x"=2], device_ids=[2, 3]>
sdy.mesh @s2 = <["x"=2], device_ids=[5, 4]>
// CHECK: @main on 6
// CHECK: <@s2, [{}, {"x"}]> {{.*}} OK
// CHECK: <@s2, [{}, {"x"}]> {{.*}} OK
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@s0, [{"x"}, {}]>},
                %w0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@s0, [{}, {"x"}]>},
                %w1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@s1, [{"x"}, {}]>},
                %w2: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@s2, [{}, {"x"}]>}, %b: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<16x16xf32>) {
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.add %0, %bb : tensor<8x16xf32>
  %2 = sdy.sharding_constraint %1 <@s1, [{?}, {?}]> : tensor<8x16xf32>
  %3 = stablehlo.dot_general %2, %w1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %4 = stablehlo.add %3, %bb : tensor<8x16xf32>
  %5 = sdy.sharding_constraint %4 <@s2, [{"x"}, {}]> : tensor<8x16xf32>
  %6 = stablehlo.dot_general %5, %w2, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %7 = stablehlo.add %6, %bb : tensor<8x16xf32>
  %8 = sdy.sharding_constraint %w1 <@s2, [{"x"}, {}]> : tensor<16x16xf32>
  %9 = stablehlo.add %w2, %8 : tensor<16x16xf32>
  return %7, %9 : tensor<8x16xf32>, tensor<16x16xf32>
}
