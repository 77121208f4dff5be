// RUN: shard-opt %s --split-input-file --sdy-propagation-pipeline --verify-diagnostics=only-expected

// A cycle of calls, through one or several functions, is reported at a call in it.

func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @itself(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @itself(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{the call of @itself in @itself is recursive}}
  %0 = call @itself(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @even(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @even(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @odd(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @odd(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{the call of @even in @odd is recursive}}
  %0 = call @even(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
