// RUN: shard-opt %s --split-input-file --verify-diagnostics --sdy-basic-propagate | FileCheck %s
// RUN: shard-opt %s --split-input-file --verify-diagnostics --sdy-basic-propagate=conservative-propagation=true | FileCheck %s --check-prefix=CONSERVATIVE
// RUN: shard-opt %s --split-input-file --verify-diagnostics --sdy-basic-propagate=keep-sharding-rules=true | FileCheck %s --check-prefix=RULES

sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @other = <["x"=2]>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>})
// CHECK-NEXT: arith.negf %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
// RULES-LABEL: func.func @forward
// RULES-NEXT: arith.negf %arg0 {{.*}}sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>
func.func @forward(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = arith.negf %a : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @backward
// CHECK-SAME: (%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>}, %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", ?}]>})
// CHECK: tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {"y", ?}]>]>}
// CHECK: linalg.fill {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {"y", ?}]>]>}
// CHECK: linalg.matmul {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {"y", ?}]>]>}
func.func @backward(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>)
    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// Operands propagate to each other along a contracted dimension.
// CHECK-LABEL: func.func @contracted
// CHECK-SAME: %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}
// CHECK: stablehlo.dot_general {{.*}} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
func.func @contracted(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// A closed dimension takes no axes; if two tensors differ, only their common prefix propagates.
// CHECK-LABEL: func.func @conflict
// CHECK-SAME: %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>}
// CHECK-NEXT: stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"y", ?}]>]>}
func.func @conflict(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) {
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A factor takes the part of an axis that divides it.
// CHECK-LABEL: func.func @split_axis
// CHECK: stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y":(1)2, ?}, {"y":(2)2, ?}]>]>}
// CONSERVATIVE-LABEL: func.func @split_axis
// CONSERVATIVE-NEXT: stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
func.func @split_axis(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %a : (tensor<8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// Tensors on different meshes do not propagate to each other.
// CHECK-LABEL: func.func @two_meshes
// CHECK-NEXT: stablehlo.add %arg0, %arg1 : tensor<8xf32>
func.func @two_meshes(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// An open constraint is sharded further and propagates its axes.
// CHECK-LABEL: func.func @constraint
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}]>})
// CHECK-NEXT: sdy.sharding_constraint %arg0 <@mesh, [{"x", ?}, {"y"}]>
func.func @constraint(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{?}, {"y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A barrier propagates in one direction only.
// CHECK-LABEL: func.func @barrier
// CHECK-SAME: (%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<8xf32>)
// CHECK-NEXT: sdy.propagation_barrier %arg0 allowed_direction=FORWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}
// CHECK-NEXT: sdy.propagation_barrier %arg1 allowed_direction=FORWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}
func.func @barrier(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<8xf32>
  %1 = sdy.propagation_barrier %b allowed_direction=FORWARD : tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// A rule on the op takes precedence over the registered rule, and stays if it is the user's.
// CHECK-LABEL: func.func @own_rule
// CHECK-NEXT: stablehlo.custom_call @mine(%arg0) {{{.*}}sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>, sdy.sharding_rule = {{.*}}custom>}
func.func @own_rule(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x8xf32> {
  %0 = stablehlo.custom_call @mine(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=8, j=4}, custom>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @dynamic(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{'arith.negf' op: propagation requires static shapes, but result 0 has type tensor<?xf32>}}
  %0 = arith.negf %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Ops that differ only in their sizes each have a rule with their own sizes.
sdy.mesh @mesh = <["x"=2]>

// RULES-LABEL: func.func @own_sizes
// RULES: stablehlo.add %arg0, %arg0 {{.*}}#sdy.op_sharding_rule<([i], [i])->([i]) {i=4}>
// RULES: stablehlo.add %arg1, %arg1 {{.*}}#sdy.op_sharding_rule<([i], [i])->([i]) {i=8}>
func.func @own_sizes(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.add %b, %b : tensor<8xf32>
  return %0, %1 : tensor<4xf32>, tensor<8xf32>
}

// An op whose rule depends on its context propagates, too.
// CHECK-LABEL: func.func @own_context
// CHECK: stablehlo.concatenate %arg0, %arg0, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
func.func @own_context(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x16xf32> {
  %0 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
