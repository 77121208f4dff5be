// RUN: shard-opt %s --split-input-file --sdy-constant-or-scalar-splitter | FileCheck %s
// RUN: shard-opt %s --split-input-file --sdy-constant-or-scalar-splitter=convert-constants=false | FileCheck %s --check-prefix=KEPT
// RUN: shard-opt %s --split-input-file --sdy-constant-or-scalar-splitter="convert-constants=false split-inside=true" | FileCheck %s --check-prefix=INSIDE

// Every use has its own copy of the expression; values that are shared within the expression stay shared.
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

// A scalar is not copied, but the op that broadcasts it is.
// CHECK-LABEL: func.func @expansion
// CHECK-NEXT: %[[B0:.*]] = stablehlo.broadcast_in_dim %arg0
// CHECK-NEXT: %[[B1:.*]] = stablehlo.broadcast_in_dim %arg0
// CHECK-NEXT: stablehlo.dot %[[B0]], %[[B1]]
func.func @expansion(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// The ops that compute a scalar keep their operand, and each other use of the operand has a copy.
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

// Copies are in the sharding groups of their originals.
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

// A constraint is a use and is not copied with its operand.
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

// Users of a destination tensor get their own copies of it, as with constants.
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

// A computation of constants only is a constant and is copied entirely; one with other operations is not.
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

// Each call of such a function gets a copy of the function; recursive and declared functions are not constant.
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

// -----

// Empty tensors, fills, and linalg ops on elements of constants only are constant expressions, too.
// CHECK-LABEL: func.func @linalg
// CHECK-COUNT-4: tensor.empty() : tensor<8x8xf32>
// CHECK-COUNT-2: linalg.fill
// CHECK: linalg.transpose
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: linalg.add
// CHECK: linalg.matmul
func.func @linalg(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = linalg.transpose ins(%b : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) permutation = [1, 0]
  %column = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %s = arith.addf %f, %zero : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %sum = linalg.add ins(%a, %column : tensor<8x8xf32>, tensor<8x8xf32>) outs(%filled : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.matmul ins(%a, %t : tensor<8x8xf32>, tensor<8x8xf32>) outs(%filled : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %sum, %c, %column : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Ops that read a captured tensor, or that reduce, are not constant.
// CHECK-LABEL: func.func @not_constant
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @not_constant(%table: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %scalar = tensor.empty() : tensor<f32>
  %read = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %e = tensor.extract %table[%i] : tensor<8xf32>
    linalg.yield %e : f32
  } -> tensor<8xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %total = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%filled : tensor<8xf32>) outs(%scalar : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %read, %read, %total, %total : tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>
}

// Constants of StableHLO are split without conversion if they are not to become constants of sdy.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: sdy.constant
// KEPT-LABEL: func.func @kept
// KEPT-COUNT-2: stablehlo.constant
// KEPT-NOT: sdy.constant
func.func @kept() -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  return %0, %0 : tensor<8xf32>, tensor<8xf32>
}

// The mask uses the positions twice: they stay one op if the entire mask is copied, and are one op per use otherwise.
// CHECK-LABEL: func.func @mask
// CHECK-COUNT-1: stablehlo.iota
// CHECK-NOT: stablehlo.iota
// CHECK: return
// KEPT-LABEL: func.func @mask
// INSIDE-LABEL: func.func @mask
// INSIDE-NEXT: %[[I0:.*]] = stablehlo.iota
// INSIDE-NEXT: %[[I1:.*]] = stablehlo.iota
// INSIDE-NEXT: %[[C0:.*]] = stablehlo.convert %[[I1]]
// INSIDE-NEXT: %[[C1:.*]] = stablehlo.convert %[[I0]]
// INSIDE-NEXT: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[C0]], dims = [0]
// INSIDE-NEXT: %[[COLUMNS:.*]] = stablehlo.broadcast_in_dim %[[C1]], dims = [1]
// INSIDE-NEXT: %[[MASK:.*]] = stablehlo.compare GT, %[[ROWS]], %[[COLUMNS]]
// INSIDE-NEXT: return %[[MASK]]
func.func @mask() -> tensor<8x8xi1> {
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.convert %0 : (tensor<8xi32>) -> tensor<8xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %4 = stablehlo.compare GT, %2, %3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>
  return %4 : tensor<8x8xi1>
}
