// RUN: shard-opt %s --shard-split-windows | FileCheck %s

sdy.mesh @mesh = <["h"=4]>

// Rows of neighbours are added around each shard of the image, and shards become features, which are contracted.
// CHECK-LABEL: func.func @kernel_gradient
// CHECK: %[[SHARDS:.*]] = stablehlo.reshape %arg0 {{.*}}[{}, {"h"}, {}, {}, {}]{{.*}}-> tensor<1x4x2x9x2xf32>
// CHECK: %[[LAST:.*]] = stablehlo.slice %[[SHARDS]] [0:1, 0:4, 1:2, 0:9, 0:2]
// CHECK: %[[ABOVE:.*]] = stablehlo.pad %[[LAST]], {{.*}}low = [0, 1, 0, 0, 0], high = [0, -1, 0, 0, 0]
// CHECK: %[[FIRST:.*]] = stablehlo.slice %[[SHARDS]] [0:1, 0:4, 0:1, 0:9, 0:2]
// CHECK: %[[BELOW:.*]] = stablehlo.pad %[[FIRST]], {{.*}}low = [0, -1, 0, 0, 0], high = [0, 1, 0, 0, 0]
// CHECK: stablehlo.concatenate %[[ABOVE]], %[[SHARDS]], %[[BELOW]], dim = 2
// CHECK: %[[IMAGE:.*]] = stablehlo.reshape {{.*}}[{"h"}, {}, {}, {}]{{.*}}-> tensor<4x4x9x2xf32>
// CHECK: %[[KERNEL:.*]] = stablehlo.reshape {{.*}}[{"h"}, {}, {}, {}]{{.*}}-> tensor<4x2x9x3xf32>
// CHECK: stablehlo.convolution(%[[IMAGE]], %[[KERNEL]]) {{.*}}pad = {{\[\[}}0, 0], [1, 1]]{{.*}}-> tensor<3x3x2x3xf32>
func.func @kernel_gradient(%image: tensor<1x8x9x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}, %of_output: tensor<1x8x9x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}) -> tensor<3x3x2x3xf32> {
  %0 = stablehlo.convolution(%image, %of_output) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x9x2xf32>, tensor<1x8x9x3xf32>) -> tensor<3x3x2x3xf32>
  return %0 : tensor<3x3x2x3xf32>
}

// The gradient of a depthwise kernel has groups of the batch, which is not contracted.
// CHECK-LABEL: func.func @depthwise
// CHECK: stablehlo.concatenate {{.*}}, dim = 2 {{.*}}-> tensor<2x4x4x9x6xf32>
// CHECK: stablehlo.convolution
// CHECK-SAME: pad = {{\[\[}}0, 0], [1, 1]]
// CHECK-SAME: batch_group_count = 6
// CHECK-SAME: (tensor<8x4x9x6xf32>, tensor<8x2x9x6xf32>) -> tensor<3x3x1x6xf32>
func.func @depthwise(%image: tensor<2x8x9x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}, %of_output: tensor<2x8x9x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}) -> tensor<3x3x1x6xf32> {
  %0 = stablehlo.convolution(%image, %of_output) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 6 : i64, feature_group_count = 1 : i64} : (tensor<2x8x9x6xf32>, tensor<2x8x9x6xf32>) -> tensor<3x3x1x6xf32>
  return %0 : tensor<3x3x1x6xf32>
}

// Groups of features are contracted separately: unchanged.
// CHECK-LABEL: func.func @groups_of_features
// CHECK-NEXT: stablehlo.convolution(%arg0, %arg1)
func.func @groups_of_features(%image: tensor<8x8x9x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}, %of_output: tensor<2x8x9x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}) -> tensor<3x3x1x4xf32> {
  %0 = stablehlo.convolution(%image, %of_output) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<8x8x9x1xf32>, tensor<2x8x9x4xf32>) -> tensor<3x3x1x4xf32>
  return %0 : tensor<3x3x1x4xf32>
}

// Zeros are added to uneven shards.
// CHECK-LABEL: func.func @uneven
// CHECK: stablehlo.pad %arg0, {{.*}}high = [0, 2, 0, 0], {{.*}}[{}, {"h"}, {}, {}]{{.*}} -> tensor<1x8x9x2xf32>
// CHECK: stablehlo.pad %arg1, {{.*}}high = [0, 2, 0, 0], {{.*}}[{}, {"h"}, {}, {}]{{.*}} -> tensor<1x8x9x3xf32>
// CHECK: stablehlo.convolution
// CHECK-SAME: (tensor<4x4x9x2xf32>, tensor<4x2x9x3xf32>) -> tensor<3x3x2x3xf32>
func.func @uneven(%image: tensor<1x6x9x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}, %of_output: tensor<1x6x9x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}) -> tensor<3x3x2x3xf32> {
  %0 = stablehlo.convolution(%image, %of_output) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x9x2xf32>, tensor<1x6x9x3xf32>) -> tensor<3x3x2x3xf32>
  return %0 : tensor<3x3x2x3xf32>
}

// Elements of the image are two places apart, as in the gradient of a transposed convolution. The windows of a shard
// begin one element before it, at the second of the three places of padding.
// CHECK-LABEL: func.func @of_transposed
// CHECK: stablehlo.concatenate {{.*}}, dim = 2 {{.*}}(tensor<1x4x1x1x1xf32>, tensor<1x4x3x1x1xf32>, tensor<1x4x1x1x1xf32>) -> tensor<1x4x5x1x1xf32>
// CHECK: stablehlo.convolution
// CHECK-SAME: pad = {{\[\[}}1, 1], [0, 0]], lhs_dilate = [2, 1]
// CHECK-SAME: (tensor<4x5x1x1xf32>, tensor<4x6x1x3xf32>) -> tensor<6x1x1x3xf32>
func.func @of_transposed(%image: tensor<1x12x1x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}, %of_output: tensor<1x24x1x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}) -> tensor<6x1x1x3xf32> {
  %0 = stablehlo.convolution(%image, %of_output) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[3, 3], [0, 0]], lhs_dilate = [2, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x12x1x1xf32>, tensor<1x24x1x3xf32>) -> tensor<6x1x1x3xf32>
  return %0 : tensor<6x1x1x3xf32>
}

// Unchanged if the result, which is reduced, is larger than the tensor that would be gathered.
// CHECK-LABEL: func.func @large_result
// CHECK-NEXT: stablehlo.convolution(%arg0, %arg1)
func.func @large_result(%image: tensor<1x8x1x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}, %of_output: tensor<1x8x1x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}, {}, {}]>}) -> tensor<3x1x32x3xf32> {
  %0 = stablehlo.convolution(%image, %of_output) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x1x32xf32>, tensor<1x8x1x3xf32>) -> tensor<3x1x32x3xf32>
  return %0 : tensor<3x1x32x3xf32>
}

// A pad with the padding value of windows becomes padding of the windows,
// CHECK-LABEL: func.func @pad_of_sum
// CHECK-NOT: stablehlo.pad
// CHECK: "stablehlo.reduce_window"(%arg0, {{.*}}padding = dense<1>
func.func @pad_of_sum(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %zero, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// also if it uses another constant of that value,
// CHECK-LABEL: func.func @pad_with_another_zero
// CHECK-NOT: stablehlo.pad
// CHECK: "stablehlo.reduce_window"(%arg0, {{.*}}padding = dense<1>
func.func @pad_with_another_zero(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %other = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %other, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// but not if it uses another value,
// CHECK-LABEL: func.func @pad_with_ones
// CHECK: %[[PADDED:.*]] = stablehlo.pad %arg0
// CHECK: "stablehlo.reduce_window"(%[[PADDED]]
func.func @pad_with_ones(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %a, %one, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// and not if the padding value of the windows is unknown.
// CHECK-LABEL: func.func @pad_of_unknown
// CHECK: stablehlo.pad %arg0
func.func @pad_of_unknown(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}, %initial: tensor<f32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %zero, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = "stablehlo.reduce_window"(%0, %initial) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.maximum %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Windows scatter into the first row of the next shard, where the values are added.
// CHECK-LABEL: func.func @max_pool_gradient
// CHECK: "stablehlo.select_and_scatter"
// CHECK: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"h"}, {}]>]>} : (tensor<4x5xf32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x5xf32>
// CHECK: stablehlo.pad {{.*}}low = [1, 0], high = [-1, 0]
// CHECK: stablehlo.add
// CHECK: stablehlo.reshape {{.*}}[{"h"}]{{.*}}-> tensor<16xf32>
// CHECK-NOT: stablehlo.slice
func.func @max_pool_gradient(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}, %of_output: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.pad %a, %least, low = [0], high = [1], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<17xf32>
  %1 = "stablehlo.select_and_scatter"(%0, %of_output, %zero) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.compare GE, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<17xf32>, tensor<8xf32>, tensor<f32>) -> tensor<17xf32>
  %3 = stablehlo.slice %1 [0:16] : (tensor<17xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}

// The last window of the last shard is missing: one that scatters a zero is added. The image is not padded.
// CHECK-LABEL: func.func @without_padding
// CHECK: stablehlo.pad %arg1, {{.*}}low = [0], high = [1], {{.*}} : (tensor<7xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK: "stablehlo.select_and_scatter"
// CHECK: : (tensor<4x5xf32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x5xf32>
// CHECK: %[[RESULT:.*]] = stablehlo.reshape {{.*}}[{"h"}]{{.*}}-> tensor<16xf32>
// CHECK-NEXT: return %[[RESULT]]
func.func @without_padding(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}, %of_output: tensor<7xf32>) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%a, %of_output, %zero) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.compare GE, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<16xf32>, tensor<7xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Windows of a shard advance by 6 elements, so the image is padded to shards of 6; the padding is removed at the end.
// CHECK-LABEL: func.func @other_distance
// CHECK: stablehlo.pad %arg0, {{.*}}low = [0], high = [8], {{.*}}[{"h"}]{{.*}} -> tensor<24xf32>
// CHECK: stablehlo.pad %arg1, {{.*}}low = [0], high = [2], {{.*}} -> tensor<8xf32>
// CHECK: "stablehlo.select_and_scatter"
// CHECK: : (tensor<4x6xf32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x6xf32>
// CHECK: stablehlo.pad {{.*}}low = [0], high = [-8], {{.*}}[{"h"}]{{.*}} : (tensor<24xf32>, tensor<f32>) -> tensor<16xf32>
func.func @other_distance(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}, %of_output: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}]>}) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.pad %a, %least, low = [0], high = [2], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<18xf32>
  %1 = "stablehlo.select_and_scatter"(%0, %of_output, %zero) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 3>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.compare GE, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<18xf32>, tensor<6xf32>, tensor<f32>) -> tensor<18xf32>
  %3 = stablehlo.slice %1 [0:16] : (tensor<18xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}

// Padding between sharded elements becomes dilation,
// CHECK-LABEL: func.func @average_pool_gradient
// CHECK-NOT: stablehlo.pad
// CHECK: "stablehlo.reduce_window"(%arg0, {{.*}}base_dilations = array<i64: 2, 1>, padding = dense<{{\[\[}}1, 1], [0, 0]]>
func.func @average_pool_gradient(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"h"}, {}]>}) -> tensor<16x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %zero, low = [1, 0], high = [1, 0], interior = [1, 0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<17x4xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 2, 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<17x4xf32>, tensor<f32>) -> tensor<16x4xf32>
  return %1 : tensor<16x4xf32>
}

// but not between others.
// CHECK-LABEL: func.func @batch_of_average_pool_gradients
// CHECK: stablehlo.pad
func.func @batch_of_average_pool_gradients(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"h"}]>}) -> tensor<16x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %zero, low = [1, 0], high = [1, 0], interior = [1, 0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<17x4xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 2, 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<17x4xf32>, tensor<f32>) -> tensor<16x4xf32>
  return %1 : tensor<16x4xf32>
}
