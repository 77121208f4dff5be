// RUN: shard-opt %s --split-input-file --sdy-constant-or-scalar-splitter | FileCheck %s

// Every use has all of the expression to itself, but within the expression what is shared stays shared.
// CHECK-LABEL: func.func @expression
// CHECK-NEXT: %[[I0:.*]] = stablehlo.iota
// CHECK-NEXT: %[[I1:.*]] = stablehlo.iota
// CHECK-NEXT: %[[C0:.*]] = sdy.constant {note = "kept"} dense<3>
// CHECK-NEXT: %[[C1:.*]] = sdy.constant {note = "kept"} dense<3>
// CHECK-NEXT: %[[C2:.*]] = sdy.constant {note = "kept"} dense<3>
// CHECK-NEXT: %[[M0:.*]] = stablehlo.multiply %[[I0]], %[[I0]]
// CHECK-NEXT: %[[M1:.*]] = stablehlo.multiply %[[I1]], %[[I1]]
// CHECK-NEXT: %[[S0:.*]] = stablehlo.add %[[M0]], %[[C0]]
// CHECK-NEXT: %[[S1:.*]] = stablehlo.add %[[M1]], %[[C2]]
// CHECK-NEXT: %[[X:.*]] = stablehlo.add %[[S0]], %arg0
// CHECK-NEXT: %[[Y:.*]] = stablehlo.subtract %[[X]], %[[C1]]
// CHECK-NEXT: return %[[Y]], %[[S1]]
func.func @expression(%a: tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>) {
  %0 = stablehlo.iota dim = 0 : tensor<6xi32>
  %1 = stablehlo.constant {note = "kept"} dense<3> : tensor<6xi32>
  %unused = stablehlo.negate %1 : tensor<6xi32>
  %2 = stablehlo.multiply %0, %0 : tensor<6xi32>
  %3 = stablehlo.add %2, %1 : tensor<6xi32>
  %4 = stablehlo.add %3, %a : tensor<6xi32>
  %5 = stablehlo.subtract %4, %1 : tensor<6xi32>
  return %5, %3 : tensor<6xi32>, tensor<6xi32>
}

// A scalar stays one; what repeats it is split.
// CHECK-LABEL: func.func @expansion
// CHECK-NEXT: %[[B0:.*]] = stablehlo.broadcast_in_dim %arg0
// CHECK-NEXT: %[[B1:.*]] = stablehlo.broadcast_in_dim %arg0
// CHECK-NEXT: stablehlo.dot %[[B0]], %[[B1]]
func.func @expansion(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// What makes a scalar stays with it, and whatever else uses it has its copy.
// CHECK-LABEL: func.func @to_scalar
// CHECK-NEXT: %[[C0:.*]] = sdy.constant
// CHECK-NEXT: %[[C1:.*]] = sdy.constant
// CHECK-NEXT: %[[S:.*]] = stablehlo.reshape %[[C1]]
// CHECK-NEXT: stablehlo.add %[[C0]], %arg0
// CHECK-NEXT: stablehlo.add %[[S]], %arg1
// CHECK-NEXT: stablehlo.add %[[S]], %arg1
func.func @to_scalar(%a: tensor<1xf32>, %b: tensor<f32>) -> (tensor<1xf32>, tensor<f32>, tensor<f32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<1xf32>
  %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
  %2 = stablehlo.add %0, %a : tensor<1xf32>
  %3 = stablehlo.add %1, %b : tensor<f32>
  %4 = stablehlo.add %1, %b : tensor<f32>
  return %2, %3, %4 : tensor<1xf32>, tensor<f32>, tensor<f32>
}

// Copies are in the sharding groups of what they are copies of.
// CHECK-LABEL: func.func @groups
// CHECK-NEXT: %[[C0:.*]] = sdy.constant
// CHECK-NEXT: sdy.sharding_group %[[C0]] group_id=2
// CHECK-NEXT: %[[C1:.*]] = sdy.constant
// CHECK-NEXT: sdy.sharding_group %[[C1]] group_id=2
// CHECK-NEXT: stablehlo.dot %[[C0]], %[[C1]]
func.func @groups() -> tensor<f32> {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  sdy.sharding_group %0 group_id=2 : tensor<8xf32>
  return %1 : tensor<f32>
}

// A constraint is a use: it is not copied with what it constrains.
// CHECK-LABEL: func.func @constrained
// CHECK-NEXT: %[[C:.*]] = sdy.constant
// CHECK-NEXT: %[[K:.*]] = sdy.sharding_constraint %[[C]]
// CHECK-NEXT: return %[[K]], %[[K]]
func.func @constrained() -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <mesh<["x"=2]>, [{"x"}]> : tensor<8xf32>
  return %1, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @regions
// CHECK-NEXT: %[[C0:.*]] = sdy.constant
// CHECK-NEXT: %[[C1:.*]] = sdy.constant
// CHECK: stablehlo.add {{.*}}, %[[C0]]
// CHECK: return {{.*}}, %[[C1]]
func.func @regions(%a: tensor<8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  %1 = "stablehlo.case"(%i) ({
    %2 = stablehlo.add %a, %0 : tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %1, %0 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A tensor that is only there to be written to ties its users no more than a constant does.
// CHECK-LABEL: func.func @linalg
// CHECK-NEXT: %[[Z:.*]] = arith.constant 0.0
// CHECK-NEXT: %[[E0:.*]] = tensor.empty
// CHECK-NEXT: %[[E1:.*]] = tensor.empty
// CHECK-NEXT: %[[F0:.*]] = linalg.fill ins(%[[Z]] : f32) outs(%[[E0]]
// CHECK-NEXT: %[[F1:.*]] = linalg.fill ins(%[[Z]] : f32) outs(%[[E1]]
// CHECK-NEXT: %[[M:.*]] = linalg.matmul {{.*}} outs(%[[F0]]
// CHECK-NEXT: linalg.matmul {{.*}} outs(%[[F1]]
func.func @linalg(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %z = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.fill ins(%z : f32) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = linalg.matmul ins(%2, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// A computation of nothing but constants is one, and split as a whole; one that does more is not.
// CHECK-LABEL: func.func @computations
// CHECK-COUNT-2: sdy.named_computation<"constant">()
// CHECK: sdy.named_computation<"more">
// CHECK-NOT: sdy.named_computation
// CHECK: return
func.func @computations() -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = sdy.named_computation<"constant">() () {
    %2 = stablehlo.constant dense<1.0> : tensor<4x4xf32>
    sdy.return %2 : tensor<4x4xf32>
  } : () -> tensor<4x4xf32>
  %1 = sdy.named_computation<"more">() () {
    %2 = stablehlo.constant dense<1.0> : tensor<4x4xf32>
    %3 = stablehlo.dot %2, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    sdy.return %3 : tensor<4x4xf32>
  } : () -> tensor<4x4xf32>
  return %0, %0, %1, %1 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A call of such a function gets a function of its own; what calls itself, or is not here, is not constant.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT: %[[A:.*]] = call @ones_0()
// CHECK-NEXT: %[[B:.*]] = call @ones_1()
// CHECK-NEXT: %[[C:.*]] = call @elsewhere()
// CHECK-NEXT: %[[D:.*]] = call @loop()
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[C]], %[[D]], %[[D]]
func.func @calls() -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = call @ones() : () -> tensor<4xf32>
  %1 = call @elsewhere() : () -> tensor<4xf32>
  %2 = call @loop() : () -> tensor<4xf32>
  return %0, %0, %1, %1, %2, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func private @ones() -> tensor<4xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @elsewhere() -> tensor<4xf32>

func.func private @loop() -> tensor<4xf32> {
  %0 = call @loop() : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK: func.func private @ones_0() -> tensor<4xf32> attributes {sdy.original_func_name = "ones"}
// CHECK: func.func private @ones_1() -> tensor<4xf32> attributes {sdy.original_func_name = "ones"}
