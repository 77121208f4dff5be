// RUN: shard-opt %s --sdy-explicit-gather-scatter-batching | FileCheck %s

// The batch index may be anywhere in the index vector; the other indices stay, concatenated if they are several.
// CHECK-LABEL: func.func @gather_middle
// CHECK-SAME: %[[IN:[^:]*]]: tensor<4x8x16xf32>, %[[I:[^:]*]]: tensor<4x1xi32>, %[[J:[^:]*]]: tensor<4x1xi32>
// CHECK-NEXT: %[[INDICES:.*]] = stablehlo.concatenate %[[I]], %[[J]], dim = 1
// CHECK-NEXT: %[[OUT:.*]] = "stablehlo.gather"(%[[IN]], %[[INDICES]])
// CHECK-SAME: collapsed_slice_dims = [1, 2], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 1
// CHECK-SAME: indices_are_sorted = true
// CHECK-SAME: note
// CHECK-NEXT: return %[[OUT]]
func.func @gather_middle(%in: tensor<4x8x16xf32>, %i: tensor<4x1xi32>, %j: tensor<4x1xi32>) -> tensor<4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4xi32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
  %2 = stablehlo.concatenate %i, %1, %j, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x3xi32>
  %3 = "stablehlo.gather"(%in, %2) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [2, 0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 1>, indices_are_sorted = true, note
  } : (tensor<4x8x16xf32>, tensor<4x3xi32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Index vectors that are not concatenations of single indices are sliced.
// CHECK-LABEL: func.func @gather_sliced
// CHECK-NEXT: %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<4x2xi32>
// CHECK-NEXT: %[[REST:.*]] = stablehlo.slice %[[IOTA]] [0:4, 1:2]
// CHECK-NEXT: "stablehlo.gather"(%arg0, %[[REST]])
// CHECK-SAME: operand_batching_dims = [0]
func.func @gather_sliced(%in: tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x2xi32>
  %1 = "stablehlo.gather"(%in, %0) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// An index that counts along another dimension, or to another size, is not a batch index.
// CHECK-LABEL: func.func @gather_not_batched
// CHECK: "stablehlo.gather"
// CHECK-NOT: operand_batching_dims
// CHECK-SAME: start_index_map = [0, 1]
// CHECK: "stablehlo.gather"
// CHECK-NOT: operand_batching_dims
// CHECK-SAME: start_index_map = [0, 1]
func.func @gather_not_batched(%in: tensor<4x8xf32>, %wide: tensor<5x8xf32>, %i: tensor<4x1xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.iota dim = 1 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %0, %i, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2 = "stablehlo.gather"(%in, %1) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %3 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %4 = stablehlo.concatenate %3, %i, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %5 = "stablehlo.gather"(%wide, %4) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<5x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %2, %5 : tensor<4xf32>, tensor<4xf32>
}

// An iota that is broadcast along another dimension, or whose rows are split, no longer counts along dimension 0.
// CHECK-LABEL: func.func @gather_moved_iota
// CHECK-NOT: operand_batching_dims
// CHECK: return
func.func @gather_moved_iota(%in: tensor<4x8xf32>, %i: tensor<4x4x1xi32>, %j: tensor<4x1xi32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4xi32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xi32>) -> tensor<4x4x1xi32>
  %2 = stablehlo.concatenate %1, %i, dim = 2 : (tensor<4x4x1xi32>, tensor<4x4x1xi32>) -> tensor<4x4x2xi32>
  %3 = "stablehlo.gather"(%in, %2) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x4x2xi32>) -> tensor<4x4xf32>
  %4 = stablehlo.iota dim = 0 : tensor<2x2xi32>
  %5 = stablehlo.reshape %4 : (tensor<2x2xi32>) -> tensor<4x1xi32>
  %6 = stablehlo.concatenate %5, %j, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %7 = "stablehlo.gather"(%in, %6) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %3, %7 : tensor<4x4xf32>, tensor<4xf32>
}

// Correcting negative indices, or clamping indices, does not change an iota.
// CHECK-LABEL: func.func @gather_corrected
// CHECK: "stablehlo.gather"
// CHECK-SAME: operand_batching_dims = [0]
// CHECK: "stablehlo.gather"
// CHECK-SAME: operand_batching_dims = [0]
func.func @gather_corrected(%in: tensor<4x8xf32>, %j: tensor<4x1xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %fours = stablehlo.constant dense<4> : tensor<4x1xi32>
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.compare LT, %0, %zeros : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
  %2 = stablehlo.add %0, %fours : tensor<4x1xi32>
  %3 = stablehlo.select %1, %2, %0 : tensor<4x1xi1>, tensor<4x1xi32>
  %4 = stablehlo.concatenate %3, %j, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %5 = "stablehlo.gather"(%in, %4) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %6 = stablehlo.clamp %zero, %0, %three : (tensor<i32>, tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32>
  %7 = stablehlo.concatenate %6, %j, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %8 = "stablehlo.gather"(%in, %7) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %5, %8 : tensor<4xf32>, tensor<4xf32>
}

// Other selects and clamps may change it.
// CHECK-LABEL: func.func @gather_changed
// CHECK-NOT: operand_batching_dims
// CHECK: return
func.func @gather_changed(%in: tensor<4x8xf32>, %j: tensor<4x1xi32>, %c: tensor<4x1xi1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.select %c, %j, %0 : tensor<4x1xi1>, tensor<4x1xi32>
  %2 = stablehlo.concatenate %1, %j, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %3 = "stablehlo.gather"(%in, %2) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %4 = stablehlo.clamp %zero, %0, %two : (tensor<i32>, tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32>
  %5 = stablehlo.concatenate %4, %j, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %6 = "stablehlo.gather"(%in, %5) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %3, %6 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[IN:[^:]*]]: tensor<4x8xf32>, %[[I:[^:]*]]: tensor<4x1xi32>, %[[UPDATES:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[OUT:.*]]:2 = "stablehlo.scatter"(%[[IN]], %[[IN]], %[[I]], %[[UPDATES]], %[[UPDATES]])
// CHECK-SAME: inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1
// CHECK: stablehlo.add
// CHECK: return %[[OUT]]#0, %[[OUT]]#1
func.func @scatter(%in: tensor<4x8xf32>, %i: tensor<4x1xi32>, %updates: tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %0, %i, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2:2 = "stablehlo.scatter"(%in, %in, %1, %updates, %updates) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %3 = stablehlo.add %a, %c : tensor<f32>
    %4 = stablehlo.add %b, %d : tensor<f32>
    stablehlo.return %3, %4 : tensor<f32>, tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x2xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %2#0, %2#1 : tensor<4x8xf32>, tensor<4x8xf32>
}
