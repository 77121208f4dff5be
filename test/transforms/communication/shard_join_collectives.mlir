// RUN: shard-opt %s --shard-join-collectives | FileCheck %s

shard.grid @grid(shape = 2x2)

// CHECK-LABEL: func.func @all_reduce
// CHECK-NEXT: %[[A:.*]] = shard.all_reduce %arg0 on @grid grid_axes = [1] reduction = max : tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT: %[[B:.*]] = "stablehlo.all_reduce"(%arg0) <{channel_handle = {{.*}}handle = 1{{.*}}, replica_groups = dense<{{\[\[}}0, 1]]>
// CHECK: stablehlo.maximum
// CHECK: (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NOT: gather
// CHECK: return %[[A]], %[[B]]
func.func @all_reduce(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = shard.reduce_scatter %a on @grid grid_axes = [1] reduction = max scatter_dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %1 = shard.all_gather %0 on @grid grid_axes = [1] gather_axis = 1 : tensor<4x4xf32> -> tensor<4x8xf32>
  %2 = "stablehlo.reduce_scatter"(%a) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %max = stablehlo.maximum %left, %right : tensor<f32>
    stablehlo.return %max : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %3 = "stablehlo.all_gather"(%2) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}> : (tensor<2x8xf32>) -> tensor<4x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @slice
// CHECK-NEXT: return %arg0
func.func @slice(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = shard.all_gather %a on @grid grid_axes = [1] gather_axis = 1 : tensor<4x4xf32> -> tensor<4x8xf32>
  %1 = shard.all_slice %0 on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @scatter
// CHECK-NEXT: %[[A:.*]] = shard.reduce_scatter %arg0 on @grid grid_axes = [1] reduction = max scatter_dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
// CHECK-NEXT: return %[[A]]
func.func @scatter(%a: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] reduction = max : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = shard.all_slice %0 on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// A sum whose entire value has a use, and a sum over other devices than those of the slice.
// CHECK-LABEL: func.func @sliced_and_used
// CHECK: all_reduce
// CHECK-NEXT: all_slice
// CHECK-NEXT: all_reduce
// CHECK-NEXT: all_slice
// CHECK-NEXT: return
func.func @sliced_and_used(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = shard.all_slice %0 on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %2 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = shard.all_slice %2 on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  return %0, %1, %3 : tensor<4x8xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// A sum that is reduced once before a loop is not reduced in each iteration instead.
// CHECK-LABEL: func.func @sliced_in_loop
// CHECK: all_reduce
// CHECK: scf.for
// CHECK: all_slice
func.func @sliced_in_loop(%a: tensor<4x8xf32>, %b: tensor<4x4xf32>, %count: index) -> tensor<4x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = scf.for %i = %zero to %count step %one iter_args(%sum = %b) -> tensor<4x4xf32> {
    %2 = shard.all_slice %0 on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
    %3 = arith.addf %sum, %2 : tensor<4x4xf32>
    scf.yield %3 : tensor<4x4xf32>
  }
  return %1 : tensor<4x4xf32>
}

// Shards with another use, other devices, another dimension, and another slice.
// CHECK-LABEL: func.func @others
// CHECK: reduce_scatter
// CHECK-NEXT: all_gather
// CHECK-NEXT: reduce_scatter
// CHECK-NEXT: all_gather
// CHECK-NEXT: reduce_scatter
// CHECK-NEXT: all_gather
// CHECK-NEXT: all_slice
func.func @others(%a: tensor<4x8xf32>)
    -> (tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<2x8xf32>) {
  %0 = shard.reduce_scatter %a on @grid grid_axes = [1] scatter_dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %1 = shard.all_gather %0 on @grid grid_axes = [1] gather_axis = 1 : tensor<4x4xf32> -> tensor<4x8xf32>
  %2 = shard.reduce_scatter %a on @grid grid_axes = [1] reduction = max scatter_dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %3 = shard.all_gather %2 on @grid grid_axes = [0] gather_axis = 1 : tensor<4x4xf32> -> tensor<4x8xf32>
  %4 = shard.reduce_scatter %a on @grid grid_axes = [1] reduction = min scatter_dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %5 = shard.all_gather %4 on @grid grid_axes = [1] gather_axis = 0 : tensor<4x4xf32> -> tensor<8x4xf32>
  %6 = shard.all_slice %1 on @grid grid_axes = [1] slice_axis = 0 : tensor<4x8xf32> -> tensor<2x8xf32>
  return %0, %1, %3, %5, %6 : tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<2x8xf32>
}
