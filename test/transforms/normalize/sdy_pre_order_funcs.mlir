// RUN: shard-opt %s --sdy-pre-order-funcs | FileCheck %s

// Declarations stay in front. Among the functions without calls, the last one comes first.
// CHECK: func.func private @declared
// CHECK: func.func @uncalled
// CHECK: func.func @main
// CHECK: func.func private @right
// CHECK: func.func private @left
// CHECK: func.func private @leaf
func.func private @leaf(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

func.func private @left(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @leaf(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @left(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @right(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @right(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @leaf(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @declared(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func @uncalled() {
  return
}
