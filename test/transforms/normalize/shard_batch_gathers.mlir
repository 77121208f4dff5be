// RUN: shard-opt %s --shard-batch-gathers | FileCheck %s

// The indices of torch for a resize: batch and channels are positions, also through arithmetic that changes nothing.
// CHECK-LABEL: func.func @resize
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x3x8x8xf32>, %[[H:[^:]*]]: tensor<4x3x5x6x1xi64>, %[[W:[^:]*]]: tensor<4x3x5x6x1xi64>
// CHECK: %[[I:.*]] = stablehlo.concatenate %[[H]], %[[W]], dim = 4
// CHECK-NEXT: "stablehlo.gather"(%[[X]], %[[I]])
// CHECK-SAME: collapsed_slice_dims = [2, 3], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2, 3], index_vector_dim = 4
func.func @resize(%x: tensor<4x3x8x8xf32>, %h: tensor<4x3x5x6x1xi64>, %w: tensor<4x3x5x6x1xi64>) -> tensor<4x3x5x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<4xi64>
  %one = stablehlo.constant dense<1> : tensor<4xi64>
  %n = stablehlo.iota dim = 0 : tensor<4xi64>
  %n1 = stablehlo.multiply %n, %one : tensor<4xi64>
  %n2 = stablehlo.add %zero, %n1 : tensor<4xi64>
  %n3 = stablehlo.reshape %n2 : (tensor<4xi64>) -> tensor<4x1x1x1xi64>
  %n4 = stablehlo.broadcast_in_dim %n3, dims = [0, 1, 2, 3] : (tensor<4x1x1x1xi64>) -> tensor<4x3x5x6xi64>
  %n5 = stablehlo.reshape %n4 : (tensor<4x3x5x6xi64>) -> tensor<4x3x5x6x1xi64>
  %c = stablehlo.iota dim = 0 : tensor<3xi32>
  %c1 = stablehlo.convert %c : (tensor<3xi32>) -> tensor<3xi64>
  %c2 = stablehlo.broadcast_in_dim %c1, dims = [1] : (tensor<3xi64>) -> tensor<4x3x5x6x1xi64>
  %i = stablehlo.concatenate %n5, %c2, %h, %w, dim = 4 : (tensor<4x3x5x6x1xi64>, tensor<4x3x5x6x1xi64>, tensor<4x3x5x6x1xi64>, tensor<4x3x5x6x1xi64>) -> tensor<4x3x5x6x4xi64>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2, 3], start_index_map = [0, 1, 2, 3], index_vector_dim = 4>, slice_sizes = array<i64: 1, 1, 1, 1>}> : (tensor<4x3x8x8xf32>, tensor<4x3x5x6x4xi64>) -> tensor<4x3x5x6xf32>
  return %0 : tensor<4x3x5x6xf32>
}

// The indices of JAX for an update at a row of each sequence, with the correction of negative indices.
// CHECK-LABEL: func.func @cache
// CHECK: "stablehlo.scatter"(%arg0, %arg1, %arg2)
// CHECK-SAME: inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1
func.func @cache(%x: tensor<4x16x2xf32>, %at: tensor<4x1xi32>, %new: tensor<4x2xf32>) -> tensor<4x16x2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<i32>) -> tensor<4xi32>
  %four = stablehlo.constant dense<4> : tensor<4xi32>
  %n = stablehlo.iota dim = 0 : tensor<4xi32>
  %p = stablehlo.compare LT, %n, %zeros, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %n1 = stablehlo.add %n, %four : tensor<4xi32>
  %n2 = stablehlo.select %p, %n1, %n : tensor<4xi1>, tensor<4xi32>
  %n3 = stablehlo.broadcast_in_dim %n2, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
  %i = stablehlo.concatenate %n3, %at, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %0 = "stablehlo.scatter"(%x, %i, %new) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4x16x2xf32>, tensor<4x2xi32>, tensor<4x2xf32>) -> tensor<4x16x2xf32>
  return %0 : tensor<4x16x2xf32>
}

// Unchanged: the iota has another size than the dimension, or is moved. One index is always kept.
// CHECK-LABEL: func.func @others
// CHECK: "stablehlo.gather"(%arg0, %{{.*}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>
// CHECK: "stablehlo.gather"(%arg1, %{{.*}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>
// CHECK: "stablehlo.gather"(%arg1, %{{.*}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>
func.func @others(%x: tensor<8x4xf32>, %y: tensor<4x4xf32>, %at: tensor<4x1xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %n = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %i = stablehlo.concatenate %n, %at, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %one = stablehlo.constant dense<1> : tensor<4x1xi32>
  %moved = stablehlo.add %n, %one : tensor<4x1xi32>
  %j = stablehlo.concatenate %moved, %at, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %1 = "stablehlo.gather"(%y, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %k = stablehlo.concatenate %n, %n, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2 = "stablehlo.gather"(%y, %k) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// An i8 has no position from 128 on, so elements of the iota are negative.
// CHECK-LABEL: func.func @wrapped
// CHECK: collapsed_slice_dims = [0, 1], start_index_map = [0, 1]
func.func @wrapped(%x: tensor<200x4xf32>, %at: tensor<200x1xi8>) -> tensor<200xf32> {
  %n = stablehlo.iota dim = 0 : tensor<200x1xi32>
  %n8 = stablehlo.convert %n : (tensor<200x1xi32>) -> tensor<200x1xi8>
  %i = stablehlo.concatenate %n8, %at, dim = 1 : (tensor<200x1xi8>, tensor<200x1xi8>) -> tensor<200x2xi8>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<200x4xf32>, tensor<200x2xi8>) -> tensor<200xf32>
  return %0 : tensor<200xf32>
}
