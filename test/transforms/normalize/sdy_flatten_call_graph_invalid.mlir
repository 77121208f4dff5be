// RUN: shard-opt %s --split-input-file --verify-diagnostics --sdy-flatten-call-graph

func.func @itself(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the call of @itself in @itself is recursive}}
  %0 = call @itself(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @ping() {
  call @pong() : () -> ()
  return
}

func.func @pong() {
  // expected-error @+1 {{the call of @ping in @pong is recursive}}
  call @ping() : () -> ()
  return
}
