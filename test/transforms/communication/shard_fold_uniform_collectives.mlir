// RUN: shard-opt %s --shard-fold-uniform-collectives | FileCheck %s

shard.grid @grid(shape = 2x2)

// CHECK-LABEL: func.func @uniform
// CHECK-NOT: shard.
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: %[[FILL:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<8xf32>)
// CHECK: %[[SPLAT:.*]] = arith.constant dense<5> : tensor<2xi32>
// CHECK: %[[ONES:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK-NOT: stablehlo.all_gather
// CHECK: return %[[EMPTY]], %[[FILL]], %[[SPLAT]], %[[ONES]]
func.func @uniform() -> (tensor<8xf32>, tensor<8xf32>, tensor<2xi32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %0 = shard.all_gather %empty on @grid grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %1 = shard.all_gather %fill on @grid grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  %fives = arith.constant dense<5> : tensor<4xi32>
  %2 = shard.all_slice %fives on @grid grid_axes = [1] slice_axis = 0 : tensor<4xi32> -> tensor<2xi32>
  %ones = stablehlo.constant dense<1.0> : tensor<4xf32>
  %3 = "stablehlo.all_gather"(%ones) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<4xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<2xi32>, tensor<8xf32>
}

// Unchanged: a scalar may differ across devices, elements differ, and sums depend on the number of devices.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: shard.all_gather
// CHECK: shard.all_reduce
func.func @others(%scalar: f32) -> (tensor<8xf32>, tensor<4xi32>, tensor<4xi32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %fill = linalg.fill ins(%scalar : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %0 = shard.all_gather %fill on @grid grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  %numbers = arith.constant dense<[1, 2]> : tensor<2xi32>
  %1 = shard.all_gather %numbers on @grid grid_axes = [0] gather_axis = 0 : tensor<2xi32> -> tensor<4xi32>
  %ones = arith.constant dense<1> : tensor<4xi32>
  %2 = shard.all_reduce %ones on @grid grid_axes = [0] : tensor<4xi32> -> tensor<4xi32>
  return %0, %1, %2 : tensor<8xf32>, tensor<4xi32>, tensor<4xi32>
}
