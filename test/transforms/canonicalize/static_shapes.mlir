// RUN: shard-opt %s -split-input-file -canonicalize | FileCheck %s
// RUN: shard-opt %s -split-input-file -canonicalize=disable-patterns=shard-static-shapes \
// RUN:   | FileCheck %s --check-prefix=DISABLED

// CHECK-LABEL: @iota
// DISABLED-LABEL: @iota
func.func @iota(%shape: tensor<2xi64>) -> tensor<3x4xi64> {
  // CHECK-NEXT: %[[IOTA:.*]] = stablehlo.iota dim = 1 : tensor<3x4xi64>
  // CHECK-NEXT: return %[[IOTA]]
  // DISABLED: stablehlo.dynamic_iota
  %0 = stablehlo.dynamic_iota %shape, dim = 1 : (tensor<2xi64>) -> tensor<3x4xi64>
  return %0 : tensor<3x4xi64>
}

// -----

// CHECK-LABEL: @dimension_size
func.func @dimension_size(%x: tensor<6x?xf32>) -> (tensor<i32>, tensor<i32>) {
  // CHECK-DAG: %[[SIZE:.*]] = stablehlo.constant dense<6> : tensor<i32>
  // CHECK-DAG: %[[UNKNOWN:.*]] = stablehlo.get_dimension_size %arg0, dim = 1
  // CHECK: return %[[SIZE]], %[[UNKNOWN]]
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<6x?xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<6x?xf32>) -> tensor<i32>
  return %0, %1 : tensor<i32>, tensor<i32>
}

// -----

// CHECK-LABEL: @reshape
func.func @reshape(%x: tensor<6xf32>, %y: tensor<?xf32>, %shape: tensor<2xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-NEXT: stablehlo.reshape %arg0 : (tensor<6xf32>) -> tensor<2x3xf32>
  // The operand of the second reshape may have any size.
  // CHECK-NEXT: stablehlo.dynamic_reshape %arg1
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %1 = stablehlo.dynamic_reshape %y, %shape : (tensor<?xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @broadcast
func.func @broadcast(%x: tensor<1x3xf32>, %shape: tensor<3xi64>) -> (tensor<4x5x3xf32>, tensor<?x5x3xf32>) {
  // CHECK-NEXT: stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<4x5x3xf32>
  // CHECK-NEXT: stablehlo.dynamic_broadcast_in_dim
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %shape) {
    broadcast_dimensions = array<i64: 1, 2>, known_expanding_dimensions = array<i64: 0>,
    known_nonexpanding_dimensions = array<i64: 1>
  } : (tensor<1x3xf32>, tensor<3xi64>) -> tensor<4x5x3xf32>
  %1 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1, 2] : (tensor<1x3xf32>, tensor<3xi64>) -> tensor<?x5x3xf32>
  return %0, %1 : tensor<4x5x3xf32>, tensor<?x5x3xf32>
}

// -----

// CHECK-LABEL: @concat
func.func @concat(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>, %z: tensor<2x?xf32>) -> (tensor<2x4xf32>, tensor<2x?xf32>) {
  // CHECK-NEXT: %[[STATIC:.*]] = tensor.concat dim(1) %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  // A part of unknown size is not changed.
  // CHECK-NEXT: %[[DYNAMIC:.*]] = tensor.concat dim(1) %arg0, %arg2 : (tensor<2x3xf32>, tensor<2x?xf32>) -> tensor<2x?xf32>
  // CHECK-NEXT: return %[[STATIC]], %[[DYNAMIC]]
  // DISABLED-LABEL: @concat
  // DISABLED: tensor.cast
  %a = tensor.cast %x : tensor<2x3xf32> to tensor<2x?xf32>
  %b = tensor.cast %y : tensor<2x1xf32> to tensor<2x?xf32>
  %0 = tensor.concat dim(1) %a, %b : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<2x4xf32>
  %1 = tensor.concat dim(1) %a, %z : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<2x?xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x?xf32>
}
