// RUN: shard-opt %s --sdy-unflatten-call-graph | FileCheck %s
// RUN: shard-opt %s --sdy-unflatten-call-graph="dedup-functions-fully=true" | FileCheck %s --check-prefix=FULLY

sdy.mesh @mesh = <["x"=2]>

// Copies with equal shardings become one, which is the first that is called.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @f(
// CHECK-NEXT: call @f_0(
// CHECK-NEXT: call @f_0(
// CHECK-NEXT: call @f_2(
// CHECK-NEXT: call @g(

// In full mode, the first copy with the shardings of most calls stays; manual axes and other functions are separate.
// FULLY-LABEL: func.func @main
// FULLY-NEXT: call @f_1(
// FULLY-NEXT: call @f_1(
// FULLY-NEXT: call @f_1(
// FULLY-NEXT: call @f_2(
// FULLY-NEXT: call @g(
func.func @main(%a: tensor<4xf32>) {
  %0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f_0(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @f_1(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @f_2(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-NOT: sdy.original_func_name
// CHECK-NOT: sdy.func_manual_axes
// CHECK: func.func private @f_1
func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

func.func private @f_0(%a: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) attributes {sdy.original_func_name = "f"} {
  return %a : tensor<4xf32>
}

func.func private @f_1(%a: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) attributes {sdy.original_func_name = "f"} {
  return %a : tensor<4xf32>
}

func.func private @f_2(%a: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) attributes {sdy.func_manual_axes = #sdy<manual_axes{"x"}>, sdy.original_func_name = "f"} {
  return %a : tensor<4xf32>
}

func.func private @g(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// A copy that is called once, after one that is called twice, does not have the most calls.
// FULLY-LABEL: func.func @once_behind_twice
// FULLY-NEXT: call @h_0(
// FULLY-NEXT: call @h_0(
// FULLY-NEXT: call @h_0(
func.func @once_behind_twice(%a: tensor<4xf32>) {
  %0 = call @h_0(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @h_0(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @h(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func private @h(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

func.func private @h_0(%a: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) attributes {sdy.original_func_name = "h"} {
  return %a : tensor<4xf32>
}
