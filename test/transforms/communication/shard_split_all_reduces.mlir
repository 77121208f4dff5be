// RUN: shard-opt %s --shard-split-all-reduces | FileCheck %s

shard.grid @grid(shape = 2x2)

// Both ops run on shards of the larger dimension, along which the other operands are sliced. A tensor that all devices
// of a group have gathered is uniform in the group.
// CHECK-LABEL: func.func @chain
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK: %[[GATHERED:.*]] = shard.all_gather %arg1
// CHECK-NEXT: %[[SUMS:.*]] = shard.all_reduce %arg2
// CHECK-NEXT: %[[OWN:.*]] = shard.reduce_scatter %arg0 on @grid grid_axes = [1] reduction = max scatter_dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
// CHECK-NEXT: %[[OTHER:.*]] = shard.all_slice %[[GATHERED]] on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OWN]], %[[OTHER]] : tensor<4x4xf32>
// CHECK-NEXT: %[[BIAS:.*]] = shard.all_slice %[[SUMS]] on @grid grid_axes = [1] slice_axis = 0 : tensor<8xf32> -> tensor<4xf32>
// CHECK-NEXT: %[[INIT:.*]] = shard.all_slice %[[EMPTY]]
// CHECK-NEXT: %[[BIASED:.*]] = linalg.generic {{.*}} ins(%[[SUM]], %[[BIAS]] : tensor<4x4xf32>, tensor<4xf32>) outs(%[[INIT]] : tensor<4x4xf32>)
// CHECK: %[[WHOLE:.*]] = shard.all_gather %[[BIASED]] on @grid grid_axes = [1] gather_axis = 1 : tensor<4x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT: return %[[WHOLE]], %[[WHOLE]]
#both = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @chain(%a: tensor<4x8xf32>, %part: tensor<4x4xf32>, %partial: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %empty = tensor.empty() : tensor<4x8xf32>
  %b = shard.all_gather %part on @grid grid_axes = [1] gather_axis = 1 : tensor<4x4xf32> -> tensor<4x8xf32>
  %bias = shard.all_reduce %partial on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
  %0 = shard.all_reduce %a on @grid grid_axes = [1] reduction = max : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = arith.addf %0, %b : tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#both, #column, #both], iterator_types = ["parallel", "parallel"]}
      ins(%1, %bias : tensor<4x8xf32>, tensor<8xf32>) outs(%empty : tensor<4x8xf32>) {
    ^bb0(%value: f32, %other: f32, %unused: f32):
      %sum = arith.addf %value, %other : f32
      linalg.yield %sum : f32
    } -> tensor<4x8xf32>
  return %2, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// Unchanged: a sum with an entire use, a matmul after it, indices of elements, dimensions that are not divisible, and
// an operand, or an element that a region captures, that may differ across devices.
// CHECK-LABEL: func.func @others
// CHECK-NOT: reduce_scatter
func.func @others(%a: tensor<4x4xf32>, %odd: tensor<3x5xf32>, %own: tensor<4x4xf32>, %element: f32)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<3x5xf32>, tensor<4x4xf32>,
        tensor<4x4xf32>) {
  %empty = tensor.empty() : tensor<4x4xf32>
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = arith.negf %0 : tensor<4x4xf32>
  %2 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4x4xf32> -> tensor<4x4xf32>
  %3 = linalg.matmul ins(%2, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = shard.all_reduce %a on @grid grid_axes = [0, 1] : tensor<4x4xf32> -> tensor<4x4xf32>
  %5 = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%4 : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
    ^bb0(%value: f32, %unused: f32):
      %row = linalg.index 0 : index
      %number = arith.index_cast %row : index to i32
      %float = arith.sitofp %number : i32 to f32
      linalg.yield %float : f32
    } -> tensor<4x4xf32>
  %6 = shard.all_reduce %odd on @grid grid_axes = [0] : tensor<3x5xf32> -> tensor<3x5xf32>
  %7 = arith.negf %6 : tensor<3x5xf32>
  %8 = shard.all_reduce %a on @grid grid_axes = [0] reduction = max : tensor<4x4xf32> -> tensor<4x4xf32>
  %9 = arith.addf %8, %own : tensor<4x4xf32>
  %10 = shard.all_reduce %a on @grid grid_axes = [0] reduction = min : tensor<4x4xf32> -> tensor<4x4xf32>
  %11 = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%10 : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
    ^bb0(%value: f32, %unused: f32):
      %sum = arith.addf %value, %element : f32
      linalg.yield %sum : f32
    } -> tensor<4x4xf32>
  return %0, %1, %3, %5, %7, %9, %11 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<3x5xf32>,
      tensor<4x4xf32>, tensor<4x4xf32>
}

// The gathered tensor is as small as the reduced one, because the extension to f64 follows the gather.
// CHECK-LABEL: func.func @widened
// CHECK: shard.reduce_scatter
// CHECK-NEXT: %[[NEGATED:.*]] = arith.negf %{{.*}} : tensor<4x2xf32>
// CHECK-NEXT: %[[WHOLE:.*]] = shard.all_gather %[[NEGATED]]
// CHECK-NEXT: arith.extf %[[WHOLE]] : tensor<4x4xf32> to tensor<4x4xf64>
func.func @widened(%a: tensor<4x4xf32>) -> tensor<4x4xf64> {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = arith.negf %0 : tensor<4x4xf32>
  %2 = arith.extf %1 : tensor<4x4xf32> to tensor<4x4xf64>
  return %2 : tensor<4x4xf64>
}
