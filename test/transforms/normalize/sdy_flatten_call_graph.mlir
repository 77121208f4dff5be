// RUN: shard-opt %s --split-input-file --sdy-flatten-call-graph | FileCheck %s

// A copy calls copies, numbered in the order of creation: the callees of a function are copied before it.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @twice
// CHECK-NEXT: call @twice_3
// CHECK-LABEL: func.func private @twice(
// CHECK-NEXT: call @leaf(
// CHECK-NEXT: call @leaf_0(
// CHECK-LABEL: func.func private @leaf(
// CHECK-NOT: sdy.original_func_name
// CHECK-LABEL: func.func private @leaf_0(
// CHECK-SAME: sdy.original_func_name = "leaf"
// CHECK-LABEL: func.func private @leaf_1(
// CHECK-SAME: sdy.original_func_name = "leaf"
// CHECK-LABEL: func.func private @leaf_0_2(
// CHECK-SAME: sdy.original_func_name = "leaf"
// CHECK-LABEL: func.func private @twice_3(
// CHECK-SAME: sdy.original_func_name = "twice"
// CHECK-NEXT: call @leaf_1(
// CHECK-NEXT: call @leaf_0_2(
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @leaf(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @leaf(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @leaf(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.abs %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A declaration has no body through which shardings propagate, and its symbol is external.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @declared(
// CHECK-NEXT: call @declared(
// CHECK: func.func private @declared
// CHECK-NOT: func.func
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @declared(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @declared(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
