// RUN: shard-opt %s --shard-simplify-collectives --split-input-file | FileCheck %s

shard.grid @grid(shape = 2x2)

// CHECK-LABEL: func.func @combined
// CHECK-NEXT: %[[SUM:.*]] = arith.maximumf %arg0, %arg1
// CHECK-NEXT: %[[REDUCED:.*]] = shard.all_reduce %[[SUM]] on @grid grid_axes = [1] reduction = max
// CHECK-NEXT: return %[[REDUCED]]
func.func @combined(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] reduction = max : tensor<4xf32> -> tensor<4xf32>
  %1 = shard.all_reduce %b on @grid grid_axes = [1] reduction = max : tensor<4xf32> -> tensor<4xf32>
  %2 = arith.maximumf %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2x2)

// CHECK-LABEL: func.func @gathered_slice
// CHECK-NEXT: return %arg0
func.func @gathered_slice(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = shard.all_slice %a on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %1 = shard.all_gather %0 on @grid grid_axes = [1] gather_axis = 1 : tensor<4x4xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

shard.grid @grid(shape = 2x3)

// CHECK-LABEL: func.func @grid_shape
// CHECK-NEXT: %[[SIZE:.*]] = arith.constant 3 : index
// CHECK-NEXT: return %[[SIZE]]
func.func @grid_shape() -> index {
  %0 = shard.grid_shape @grid axes = [1] : index
  return %0 : index
}

// -----

// If no pattern may match, other operations are not folded either.
shard.grid @grid(shape = 2x2)

// CHECK-LABEL: func.func @others
// CHECK-NEXT: shard.all_reduce
// CHECK-NEXT: %[[ONE:.*]] = arith.constant
// CHECK-NEXT: arith.addi %[[ONE]], %[[ONE]]
func.func @others(%a: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %1 = arith.constant 1 : index
  %2 = arith.addi %1, %1 : index
  return %0, %2 : tensor<4xf32>, index
}
