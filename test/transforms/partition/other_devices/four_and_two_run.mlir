// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// Four devices learn and two act: four of six devices are not a part of a grid, so exchanges reduce the gradients.
sdy.mesh @learner = <["data"=2, "model"=2]>
sdy.mesh @actor = <["x"=2], device_ids=[4, 5]>
// CHECK: @main on 6
// CHECK: <@learner, [{}, {"model"}]> {{.*}} OK
// CHECK: <@actor, [{"x"}, {}]> {{.*}} OK
// CHECK: <@learner, []> {{.*}} OK
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@learner, [{"data"}, {}]>},
                %w: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@learner, [{}, {"model"}]>},
                %obs: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@actor, [{"x"}, {}]>}) -> (tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@learner, [{}, {"model"}]>}, tensor<4x12xf32>, tensor<f32>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x12xf32>) -> tensor<16x12xf32>
  %lr = stablehlo.constant dense<0.01> : tensor<16x12xf32>
  %d = stablehlo.multiply %g, %lr : tensor<16x12xf32>
  %new = stablehlo.subtract %w, %d : tensor<16x12xf32>
  %wa = sdy.sharding_constraint %new <@actor, [{}, {}]> : tensor<16x12xf32>
  %act = stablehlo.dot_general %obs, %wa, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x12xf32>) -> tensor<4x12xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x12xf32>, tensor<f32>) -> tensor<f32>
  return %new, %act, %loss : tensor<16x12xf32>, tensor<4x12xf32>, tensor<f32>
}
