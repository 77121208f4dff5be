// RUN: shard-run %s | FileCheck %s
// RUN: sed 's/"y"=2/"y"=3/' %s | shard-run - | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s --check-prefix=LOCAL
// RUN: shard-opt %s --shard-propagate --shard-spmdize --shard-communication-report -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// Windows of StableHLO on shards with halos, even and uneven, on four and on six devices.
// CHECK: result
// CHECK-COUNT-8: OK

// Only the totals of the cumulative sum's shards are gathered: a device receives three rows of five elements.
// LOCAL-NOT: gather
// REPORT-COUNT-8: halo_exchange
// REPORT-NEXT: all_gather {{.*}} 60 B {{.*}} 240 B
// REPORT-NOT: gather

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(
    %a: tensor<2x17x6x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
    %b: tensor<2x16x9x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
    %c: tensor<15x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
    %k: tensor<3x3x3x5xf32>, %l: tensor<3x2x4x2xf32>, %padding: tensor<f32>,
    %d: tensor<24x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
    %e: tensor<12x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>})
    -> (tensor<2x17x6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<2x8x9x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
        tensor<2x32x11x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<8x5xui8> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
        tensor<24x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
        tensor<32x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
        tensor<15x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
        tensor<24x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) {
  // LOCAL: shard.update_halo {{.*}} halo_sizes = [1, 1]
  // LOCAL: stablehlo.convolution
  // LOCAL-SAME{LITERAL}: pad = [[0, 0], [1, 1]]
  %same = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x17x6x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x17x6x5xf32>
  // Corners are received in two exchanges.
  %strided = stablehlo.convolution(%b, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[0, 1], [2, 0]], rhs_dilate = [1, 2], reverse = [true, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x16x9x4xf32>, tensor<3x2x4x2xf32>) -> tensor<2x8x9x2xf32>
  // The first element of each shard is the first one in its first window.
  // LOCAL: stablehlo.convolution
  // LOCAL: stablehlo.convolution
  // LOCAL-SAME: lhs_dilate = [2, 2]
  %of_dilated = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 0], [1, 1]], lhs_dilate = [2, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x17x6x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x32x11x5xf32>
  // Values beyond the tensor are the smallest number, not zero.
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0> : tensor<ui8>
  %positive = stablehlo.abs %c : tensor<15x5xf32>
  %hundred = stablehlo.constant dense<100.0> : tensor<15x5xf32>
  %scaled = stablehlo.multiply %positive, %hundred : tensor<15x5xf32>
  %limit = stablehlo.constant dense<255.0> : tensor<15x5xf32>
  %limited = stablehlo.minimum %scaled, %limit : tensor<15x5xf32>
  %unsigned = stablehlo.convert %limited : (tensor<15x5xf32>) -> tensor<15x5xui8>
  %maximum = "stablehlo.reduce_window"(%unsigned, %least) <{window_dimensions = array<i64: 3, 1>,
      window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<ui8>, %right: tensor<ui8>):
    %0 = stablehlo.maximum %left, %right : tensor<ui8>
    stablehlo.return %0 : tensor<ui8>
  }) : (tensor<15x5xui8>, tensor<ui8>) -> tensor<8x5xui8>
  // Each shard needs eight elements before it, six of them from its neighbour.
  // LOCAL: shard.update_halo {{.*}} halo_sizes = [6, 0]
  // LOCAL: shard.update_halo {{.*}} halo_sizes = [2, 0]
  %far = "stablehlo.reduce_window"(%d, %zero) <{window_dimensions = array<i64: 9, 1>,
      padding = dense<[[8, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %0 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<24x5xf32>, tensor<f32>) -> tensor<24x5xf32>
  %padded = stablehlo.pad %c, %padding, low = [2, 0], high = [1, 0], interior = [1, 0] : (tensor<15x5xf32>, tensor<f32>) -> tensor<32x5xf32>
  // LOCAL: shard.all_gather {{.*}} : tensor<1x5xf32> -> tensor<4x5xf32>
  // LOCAL-NOT: shard.all_gather
  // LOCAL: stablehlo.select_and_scatter
  %sums = "stablehlo.reduce_window"(%c, %zero) <{window_dimensions = array<i64: 15, 1>,
      padding = dense<[[14, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %0 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<15x5xf32>, tensor<f32>) -> tensor<15x5xf32>
  // Each shard contains its windows.
  %scattered = "stablehlo.select_and_scatter"(%d, %e, %zero) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %0 = stablehlo.compare GE, %left, %right : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }, {
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %0 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<24x5xf32>, tensor<12x5xf32>, tensor<f32>) -> tensor<24x5xf32>
  return %same, %strided, %of_dilated, %maximum, %far, %padded, %sums, %scattered : tensor<2x17x6x5xf32>, tensor<2x8x9x2xf32>,
    tensor<2x32x11x5xf32>, tensor<8x5xui8>, tensor<24x5xf32>, tensor<32x5xf32>, tensor<15x5xf32>, tensor<24x5xf32>
}
