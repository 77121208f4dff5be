// RUN: shard-opt %s --split-input-file --shard-fold-empty-tensors | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @slice
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} dense<> : tensor<0x6xf32>
// CHECK-NEXT: return %[[C]]
func.func @slice(%a: tensor<8x6xf32>) -> tensor<0x6xf32> {
  %0 = stablehlo.slice %a [8:8, 0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : (tensor<8x6xf32>) -> tensor<0x6xf32>
  return %0 : tensor<0x6xf32>
}

// A concatenation with one part left is replaced by this part.
// CHECK-LABEL: func.func @concatenate
// CHECK: %[[C:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
// CHECK-NEXT: return %[[C]], %arg0
func.func @concatenate(%a: tensor<2xf32>, %b: tensor<3xf32>) -> (tensor<5xf32>, tensor<2xf32>) {
  %0 = stablehlo.slice %a [1:1] : (tensor<2xf32>) -> tensor<0xf32>
  %1 = stablehlo.concatenate %a, %0, %b, dim = 0 : (tensor<2xf32>, tensor<0xf32>, tensor<3xf32>) -> tensor<5xf32>
  %2 = stablehlo.concatenate %0, %a, dim = 0 : (tensor<0xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1, %2 : tensor<5xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @reduce
// CHECK: %[[INIT:.*]] = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[B:.*]] = stablehlo.broadcast_in_dim %[[INIT]], dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[B]]
func.func @reduce(%a: tensor<0x6xf32>) -> tensor<6xf32> {
  %init = stablehlo.constant dense<-1.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %init) applies stablehlo.maximum across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}], unreduced={"x"}>]>} : (tensor<0x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// A padded empty tensor is its padding, also with interior padding.
// CHECK-LABEL: func.func @pad
// CHECK: %[[Z:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[P:.*]] = stablehlo.broadcast_in_dim %[[Z]], dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : (tensor<f32>) -> tensor<3x6xf32>
// CHECK-NEXT: return %[[P]]
func.func @pad(%a: tensor<0x6xf32>) -> tensor<3x6xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %a, %z, low = [2, 0], high = [1, 0], interior = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : (tensor<0x6xf32>, tensor<f32>) -> tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}

// CHECK-LABEL: func.func @update
// CHECK-NEXT: return %arg0
func.func @update(%a: tensor<8x6xf32>, %b: tensor<0x6xf32>, %i: tensor<i32>) -> tensor<8x6xf32> {
  %0 = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<8x6xf32>, tensor<0x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// CHECK-LABEL: func.func @moved
// CHECK-NOT: sdy.reshard
// CHECK: stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} dense<> : tensor<0x6xf32>
func.func @moved(%a: tensor<0x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<0x6xf32> {
  %0 = sdy.reshard %a <@mesh, [{}, {}]> : tensor<0x6xf32>
  return %0 : tensor<0x6xf32>
}

// An op with side effects stays, and so does an op that computes a nonempty result from an empty operand.
// CHECK-LABEL: func.func @kept
// CHECK: stablehlo.custom_call @f
// CHECK: stablehlo.dot_general
func.func @kept(%a: tensor<4x0xf32>) -> (tensor<0xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.custom_call @f(%a) {has_side_effect = true} : (tensor<4x0xf32>) -> tensor<0xf32>
  %1 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : (tensor<4x0xf32>, tensor<4x0xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<0xf32>, tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @other_dialects
// CHECK: tensor.extract_slice
// CHECK-NEXT: sdy.reshard
sdy.mesh @mesh = <["x"=2]>
func.func @other_dialects(%a: tensor<8xf32>) -> tensor<0xf32> {
  %0 = tensor.extract_slice %a[0] [0] [1] : tensor<8xf32> to tensor<0xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<0xf32>
  return %1 : tensor<0xf32>
}
