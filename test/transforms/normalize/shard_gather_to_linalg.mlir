// RUN: shard-opt %s --split-input-file --shard-gather-to-linalg | FileCheck %s

// A module that shard-extract-to-gather has marked has no op of StableHLO afterwards, and no mark.
// CHECK: module {
// CHECK-LABEL: func.func @marked
// CHECK-NOT: stablehlo
// CHECK: linalg.generic
// CHECK: tensor.extract %arg0
// CHECK-NOT: stablehlo
module attributes {mlir_shard.without_stablehlo} {
  func.func @marked(%table: tensor<16x4xf32>, %rows: tensor<8x1xi64>) -> tensor<8x4xf32> {
    %0 = "stablehlo.gather"(%table, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<16x4xf32>, tensor<8x1xi64>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// A program in StableHLO keeps its gathers.
// CHECK-LABEL: func.func @in_stablehlo
// CHECK: stablehlo.gather
func.func @in_stablehlo(%table: tensor<16x4xf32>, %rows: tensor<8x1xi64>) -> tensor<8x4xf32> {
  %0 = "stablehlo.gather"(%table, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<16x4xf32>, tensor<8x1xi64>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
