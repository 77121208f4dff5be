// RUN: shard-opt %s --split-input-file --shard-make-static='shapes=0=32x16' | FileCheck %s

// A program in linalg and tensor.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}
// CHECK-SAME: -> tensor<32x8xf32>
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<32x8xf32>
// CHECK: linalg.matmul {{.*}} -> tensor<32x8xf32>
// CHECK-NOT: ?
// CHECK: return
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<?x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %w: tensor<16x8xf32>)
    -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %size = tensor.dim %x, %c0 : tensor<?x16xf32>
  %empty = tensor.empty(%size) : tensor<?x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x16xf32>, tensor<16x8xf32>) outs(%start : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A program in tosa.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<32x16xf32>) -> tensor<32x1xf32>
// CHECK: tosa.exp {{.*}} : (tensor<32x16xf32>) -> tensor<32x16xf32>
// CHECK: tosa.reduce_sum {{.*}} -> tensor<32x1xf32>
func.func @main(%x: tensor<?x16xf32>) -> tensor<?x1xf32> {
  %0 = tosa.exp %x : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %1 = tosa.reduce_sum %0 {axis = 1 : i32} : (tensor<?x16xf32>) -> tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}

// -----

// A program of jax.export: %size is its dimension variable `batch`, on which it has an assertion.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<32x16xf32>) -> tensor<64x8xf32>
// CHECK-NOT: shape_assertion
// CHECK: call @wrapped(%arg0) : (tensor<32x16xf32>) -> tensor<64x8xf32>
// CHECK: func.func private @wrapped(%arg0: tensor<32x16xf32>) -> tensor<64x8xf32>
// CHECK: stablehlo.reshape {{.*}} -> tensor<64x8xf32>
func.func @main(%x: tensor<?x16xf32>) -> tensor<?x8xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x16xf32>) -> tensor<i32>
  %holds = stablehlo.compare GE, %size, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%holds, %size) {api_version = 2 : i32, has_side_effect = true,
    error_message = "Expected value >= 1 for dimension variable 'batch', not {0}."} : (tensor<i1>, tensor<i32>) -> ()
  %0 = call @wrapped(%size, %x) : (tensor<i32>, tensor<?x16xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func private @wrapped(%size: tensor<i32> {jax.global_constant = "batch"}, %x: tensor<?x16xf32>)
    -> tensor<?x8xf32> {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %eight = stablehlo.constant dense<8> : tensor<1xi32>
  %rows = stablehlo.multiply %size, %two : tensor<i32>
  %0 = stablehlo.reshape %rows : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %0, %eight, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %1 = stablehlo.dynamic_reshape %x, %shape : (tensor<?x16xf32>, tensor<2xi32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// A static program is not changed.
// CHECK-LABEL: func.func @main(%arg0: tensor<32x16xf32>) -> tensor<32x16xf32>
func.func @main(%x: tensor<32x16xf32>) -> tensor<32x16xf32> {
  return %x : tensor<32x16xf32>
}
