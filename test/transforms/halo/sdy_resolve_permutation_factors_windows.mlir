// RUN: shard-opt %s --sdy-resolve-permutation-factors='exchange-windows=true' | FileCheck %s
// RUN: shard-opt %s --sdy-resolve-permutation-factors | FileCheck %s --check-prefix=WHOLE

sdy.mesh @mesh = <["x"=2, "y"=2]>

// The last row of the block before comes first, the first one of the block behind last; zeros at the ends are padding.
// CHECK-LABEL: func @same_convolution
// CHECK-NEXT: %[[ALL:.*]] = sdy.manual_computation(%arg0, %arg1)
// CHECK-SAME:   manual_axes={"x"} (%[[OWN:.*]]: tensor<1x4x8x3xf32>, %[[KERNEL:.*]]: tensor<3x3x3x5xf32>) {
// CHECK:        %[[LAST:.*]] = stablehlo.slice %[[OWN]] [0:1, 3:4, 0:8, 0:3]
// CHECK-NEXT:   %[[BELOW:.*]] = "stablehlo.collective_permute"(%[[LAST]])
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[0, 2], [1, 3]]>
// CHECK-NEXT:   %[[FIRST:.*]] = stablehlo.slice %[[OWN]] [0:1, 0:1, 0:8, 0:3]
// CHECK-NEXT:   %[[ABOVE:.*]] = "stablehlo.collective_permute"(%[[FIRST]])
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[2, 0], [3, 1]]>
// CHECK-NEXT:   %[[BORDERED:.*]] = stablehlo.concatenate %[[BELOW]], %[[OWN]], %[[ABOVE]], dim = 1
// CHECK-NEXT:   %[[LOCAL:.*]] = stablehlo.convolution(%[[BORDERED]], %[[KERNEL]])
// CHECK-SAME{LITERAL}: pad = [[0, 0], [1, 1]]
// CHECK-NEXT:   sdy.return %[[LOCAL]] : tensor<1x4x8x5xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[ALL]]

// WHOLE-LABEL: func @same_convolution
// WHOLE-NEXT: %[[GATHERED:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}, {}, {}]>
// WHOLE-NEXT: stablehlo.convolution(%[[GATHERED]], %arg1)
func.func @same_convolution(
    %a: tensor<1x8x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}, {}]>},
    %k: tensor<3x3x3x5xf32>) -> tensor<1x8x8x5xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}, {}]>]>}
    : (tensor<1x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x8x8x5xf32>
  return %0 : tensor<1x8x8x5xf32>
}

// Windows that stay in their blocks need nothing.
// CHECK-LABEL: func @pool
// CHECK-NEXT: %[[INIT:.*]] = stablehlo.constant
// CHECK-NEXT: sdy.manual_computation(%arg0, %[[INIT]])
// CHECK-SAME:   (%[[OWN:.*]]: tensor<4x3xf32>, %[[START:.*]]: tensor<f32>) {
// CHECK-NEXT:   "stablehlo.reduce_window"(%[[OWN]], %[[START]])
func.func @pool(%a: tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<8x3xf32> {
  %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %init) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %m = stablehlo.maximum %l, %r : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>} : (tensor<16x3xf32>, tensor<f32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// What is sent to the ends is no element of the maximum: there is the initial value instead.
// CHECK-LABEL: func @maximum_with_padding
// CHECK:      %[[SENT:.*]] = "stablehlo.collective_permute"
// CHECK:      %[[IS_THERE:.*]] = stablehlo.compare GE
// CHECK-NEXT: %[[PADDING:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [] : (tensor<f32>) -> tensor<2xf32>
// CHECK-NEXT: %[[BELOW:.*]] = stablehlo.select %[[IS_THERE]], %[[SENT]], %[[PADDING]]
// CHECK-NEXT: stablehlo.concatenate %[[BELOW]], %{{.*}}, dim = 0
func.func @maximum_with_padding(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %init = stablehlo.constant dense<-7.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %init) <{window_dimensions = array<i64: 3>, padding = dense<[[2, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %m = stablehlo.maximum %l, %r : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A sum that begins with one counts that for each element of its padding, or not at all.
// CHECK-LABEL: func @sum_that_begins_with_one
// CHECK-NOT: sdy.manual_computation
// CHECK: sdy.reshard %arg0 <@mesh, [{}]>
func.func @sum_that_begins_with_one(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %init = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %init) <{window_dimensions = array<i64: 3>, padding = dense<[[2, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %m = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Its last windows need elements of all blocks before: these are gathered.
// CHECK-LABEL: func @cumulative_sum
// CHECK-NOT: sdy.manual_computation
// CHECK: sdy.reshard %arg0 <@mesh, [{}]>
func.func @cumulative_sum(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> tensor<8xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %init) <{window_dimensions = array<i64: 8>, padding = dense<[[7, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %m = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Of the block before and of one element of that before that.
// CHECK-LABEL: func @over_two_blocks
// CHECK: sdy.manual_computation(%arg0, %{{[a-z0-9_]+}})
// CHECK-SAME: manual_axes={"x", "y"} (%[[OWN:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[NEAR:.*]] = "stablehlo.collective_permute"(%[[OWN]])
// CHECK-SAME{LITERAL}: dense<[[0, 1], [1, 2], [2, 3]]>
// CHECK-NEXT: %[[LAST:.*]] = stablehlo.slice %[[OWN]] [3:4]
// CHECK-NEXT: %[[FAR:.*]] = "stablehlo.collective_permute"(%[[LAST]])
// CHECK-SAME{LITERAL}: dense<[[0, 2], [1, 3]]>
// CHECK-NEXT: %[[BORDERED:.*]] = stablehlo.concatenate %[[FAR]], %[[NEAR]], %[[OWN]], dim = 0
// CHECK-NEXT: "stablehlo.reduce_window"(%[[BORDERED]]
func.func @over_two_blocks(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> tensor<16xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %init) <{window_dimensions = array<i64: 6>, padding = dense<[[5, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %m = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}]>]>} : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Between elements that are two apart there is nothing to send, before the first one there is padding.
// CHECK-LABEL: func @pad
// CHECK: sdy.manual_computation(%arg0, %arg1)
// CHECK-SAME: (%[[OWN:.*]]: tensor<4xf32>, %[[PADDING:.*]]: tensor<f32>)
// CHECK-NEXT: %[[LAST:.*]] = stablehlo.slice %[[OWN]] [3:4]
// CHECK-NEXT: "stablehlo.collective_permute"(%[[LAST]])
// CHECK: stablehlo.pad %{{.*}}, %[[PADDING]], low = [0], high = [1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
func.func @pad(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %p: tensor<f32>) -> tensor<16xf32> {
  %0 = stablehlo.pad %a, %p, low = [2], high = [-1], interior = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
    : (tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Sharded along batches and channels, a convolution is as it was.
// CHECK-LABEL: func @of_batches
// CHECK-NEXT: stablehlo.convolution(%arg0, %arg1)
func.func @of_batches(
    %a: tensor<2x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>},
    %k: tensor<3x3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"y"}]>}) -> tensor<2x8x4xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}, {"y"}]>]>}
    : (tensor<2x8x3xf32>, tensor<3x3x4xf32>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}
