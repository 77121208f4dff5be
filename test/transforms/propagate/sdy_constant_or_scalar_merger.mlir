// RUN: shard-opt %s --sdy-constant-or-scalar-merger | FileCheck %s

sdy.mesh @mesh = <["x"=2]>

// Constants merge with the chains of broadcasts that use them: one of several isomorphic chains is left.
// CHECK-LABEL: func.func @chains
// CHECK-NEXT: %[[SCALAR:.*]] = sdy.constant dense<1.0{{.*}}> : tensor<f32>
// CHECK-NEXT: %[[WIDE:.*]] = stablehlo.broadcast_in_dim %[[SCALAR]], dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: stablehlo.add %[[WIDE]], %[[WIDE]]
// CHECK-NEXT: return
func.func @chains() -> tensor<4xf32> {
  %0 = sdy.constant dense<1.0> : tensor<f32>
  %1 = sdy.constant dense<1.0> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %4 = stablehlo.add %2, %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// CHECK-LABEL: func.func @different
// CHECK-COUNT-3: stablehlo.constant
// CHECK-NOT: stablehlo.constant
// CHECK: return
func.func @different() -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
  %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<4xf32>
  %2 = stablehlo.constant dense<2.0> : tensor<4xf32>
  %3 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Broadcasts of tensors, or of two different scalars, are not parts of split constants.
// CHECK-LABEL: func.func @broadcasts
// CHECK-COUNT-4: stablehlo.broadcast_in_dim
// CHECK: return
func.func @broadcasts(%a: tensor<4xf32>, %s: tensor<f32>, %t: tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
  %3 = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// The regions of one op and the surrounding block are separate; constants merge within each of them.
// CHECK-LABEL: func.func @regions
// CHECK-COUNT-1: arith.constant
// CHECK: scf.if
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.addf
// CHECK: else
// CHECK-NEXT: arith.constant
// CHECK-NEXT: scf.yield
func.func @regions(%c: i1) -> (f32, f32) {
  %0 = arith.constant 1.0 : f32
  %1 = scf.if %c -> f32 {
    %2 = arith.constant 1.0 : f32
    %3 = arith.constant 1.0 : f32
    %4 = arith.addf %2, %3 : f32
    scf.yield %4 : f32
  } else {
    %5 = arith.constant 1.0 : f32
    scf.yield %5 : f32
  }
  return %0, %1 : f32, f32
}
