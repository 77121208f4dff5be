// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: sed 's/"y"=2/"y"=1/' %s | shard-run --engine=pjrt - | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize='collectives=stablehlo' | FileCheck %s --check-prefix=LOCAL
// RUN: shard-opt %s --shard-propagate --shard-spmdize='collectives=stablehlo' --shard-communication-report -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// On four devices and on two.
// CHECK: result
// CHECK-COUNT-6: OK

// LOCAL-NOT: gather

// Of the first convolution's image, 2x16x8x3 elements of four bytes, a device receives one row from either side.
// REPORT: collective_permute {{.*}} 192 B {{.*}} 576 B
// REPORT-NEXT: collective_permute {{.*}} 192 B {{.*}} 576 B

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(
    %a: tensor<2x16x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
    %b: tensor<2x16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
    %c: tensor<1x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}]>},
    %d: tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
    %k: tensor<3x3x3x5xf32>, %l: tensor<3x2x4x2xf32>,
    %m: tensor<5x4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>})
    -> (tensor<2x16x8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<2x8x8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
        tensor<1x16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {}]>},
        tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
        tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
        tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}) {
  %same = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x16x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x16x8x5xf32>
  // Corners are received in two exchanges.
  %strided = stablehlo.convolution(%b, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[0, 1], [2, 0]], rhs_dilate = [1, 2], reverse = [true, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x16x8x4xf32>, tensor<3x2x4x2xf32>) -> tensor<2x8x8x2xf32>
  // Channels are summed over the devices.
  %summed = stablehlo.convolution(%c, %m) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[3, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x16x4xf32>, tensor<5x4x3xf32>) -> tensor<1x16x3xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %maximum = "stablehlo.reduce_window"(%d, %least) <{window_dimensions = array<i64: 3, 1>,
      window_strides = array<i64: 2, 1>, padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %0 = stablehlo.maximum %left, %right : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<16x6xf32>, tensor<f32>) -> tensor<8x6xf32>
  %sum = "stablehlo.reduce_window"(%d, %zero) <{window_dimensions = array<i64: 4, 3>,
      padding = dense<[[1, 2], [1, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %0 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<16x6xf32>, tensor<f32>) -> tensor<16x6xf32>
  // Each shard contains its windows.
  %inside = "stablehlo.reduce_window"(%d, %zero) <{window_dimensions = array<i64: 2, 1>,
      window_strides = array<i64: 2, 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %0 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<16x6xf32>, tensor<f32>) -> tensor<8x6xf32>
  return %same, %strided, %summed, %maximum, %sum, %inside : tensor<2x16x8x5xf32>, tensor<2x8x8x2xf32>,
    tensor<1x16x3xf32>, tensor<8x6xf32>, tensor<16x6xf32>, tensor<8x6xf32>
}
