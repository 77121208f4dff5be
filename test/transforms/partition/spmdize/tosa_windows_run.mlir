// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s --check-prefix=LOCAL

// Convolutions and pools on shards with halos, with padding only at the ends of the tensor.
// CHECK: result
// CHECK-COUNT-6: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>
// LOCAL-NOT: gather
// LOCAL: func.func @main
func.func @main(
    %a: tensor<1x16x9x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
    %b: tensor<2x9x13x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
    %k: tensor<5x3x2x3xf32>, %kd: tensor<3x3x4x2xf32>,
    %of_five: tensor<5xf32>, %of_eight: tensor<8xf32>)
    -> (tensor<1x14x7x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<1x16x9x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<1x14x9x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<2x9x13x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
        tensor<2x5x6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
        tensor<1x16x7x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>}) {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  // LOCAL: shard.update_halo
  // LOCAL: tosa.max_pool2d
  %0 = tosa.max_pool2d %a {kernel = array<i64: 3, 3>, stride = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>}
      : (tensor<1x16x9x4xf32>) -> tensor<1x14x7x4xf32>
  // LOCAL: shard.update_halo
  // LOCAL: arith.select
  // LOCAL: tosa.max_pool2d {{.*}} pad = array<i64: 0, 0, 1, 1>
  %1 = tosa.max_pool2d %a {kernel = array<i64: 3, 3>, stride = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>}
      : (tensor<1x16x9x4xf32>) -> tensor<1x16x9x4xf32>
  // LOCAL: tosa.avg_pool2d
  %2 = tosa.avg_pool2d %a, %zero, %zero {kernel = array<i64: 3, 3>, stride = array<i64: 1, 1>, pad = array<i64: 0, 0, 1, 1>, acc_type = f32}
      : (tensor<1x16x9x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x14x9x4xf32>
  // Two dimensions with partly filled shards.
  // LOCAL: tosa.conv2d {{.*}} pad = array<i64: 0, 0, 0, 0>
  %3 = tosa.conv2d %b, %k, %of_five, %zero, %zero {pad = array<i64: 1, 1, 1, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32}
      : (tensor<2x9x13x3xf32>, tensor<5x3x2x3xf32>, tensor<5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x9x13x5xf32>
  %4 = tosa.conv2d %b, %k, %of_five, %zero, %zero {pad = array<i64: 1, 1, 0, 0>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 2>, acc_type = f32}
      : (tensor<2x9x13x3xf32>, tensor<5x3x2x3xf32>, tensor<5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x5x6x5xf32>
  // LOCAL: tosa.depthwise_conv2d
  %5 = tosa.depthwise_conv2d %a, %kd, %of_eight, %zero, %zero {pad = array<i64: 1, 1, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32}
      : (tensor<1x16x9x4xf32>, tensor<3x3x4x2xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x16x7x8xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<1x14x7x4xf32>, tensor<1x16x9x4xf32>, tensor<1x14x9x4xf32>, tensor<2x9x13x5xf32>, tensor<2x5x6x5xf32>, tensor<1x16x7x8xf32>
}
