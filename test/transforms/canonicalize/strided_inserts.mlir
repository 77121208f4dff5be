// RUN: shard-opt %s --canonicalize | FileCheck %s

// One element of padding is two elements of the result, because of the stride of the insertion.
// CHECK-LABEL: func.func @padded
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
func.func @padded(%x: tensor<4xf32>) -> tensor<20xf32> {
  %v = arith.constant 1.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<4xf32> to tensor<6xf32>
  %e = tensor.empty() : tensor<20xf32>
  %f = linalg.fill ins(%v : f32) outs(%e : tensor<20xf32>) -> tensor<20xf32>
  // CHECK: %[[INNER:.*]] = linalg.fill {{.*}} outs({{.*}} : tensor<6xf32>)
  // CHECK: %[[P:.*]] = tensor.insert_slice %[[X]] into %[[INNER]][1] [4] [1]
  // CHECK: tensor.insert_slice %[[P]] into %{{.*}}[1] [6] [2]
  %0 = tensor.insert_slice %p into %f[1] [6] [2] : tensor<6xf32> into tensor<20xf32>
  return %0 : tensor<20xf32>
}

// Without strides, the host's fold is correct.
// CHECK-LABEL: func.func @contiguous
func.func @contiguous(%x: tensor<4xf32>) -> tensor<20xf32> {
  %v = arith.constant 1.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<4xf32> to tensor<6xf32>
  %e = tensor.empty() : tensor<20xf32>
  %f = linalg.fill ins(%v : f32) outs(%e : tensor<20xf32>) -> tensor<20xf32>
  // CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[2] [4] [1] : tensor<4xf32> into tensor<20xf32>
  %0 = tensor.insert_slice %p into %f[1] [6] [1] : tensor<6xf32> into tensor<20xf32>
  return %0 : tensor<20xf32>
}

// Padding with other values stays.
// CHECK-LABEL: func.func @of_indices
func.func @of_indices(%x: tensor<4xindex>, %y: tensor<20xindex>) -> tensor<20xindex> {
  // CHECK: tensor.pad
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<4xindex> to tensor<6xindex>
  %0 = tensor.insert_slice %p into %y[1] [6] [2] : tensor<6xindex> into tensor<20xindex>
  return %0 : tensor<20xindex>
}
