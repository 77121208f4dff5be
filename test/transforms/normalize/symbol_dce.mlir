// RUN: shard-opt %s --symbol-dce --split-input-file | FileCheck %s

// Functions that are called, directly or indirectly, stay, and so do public functions.
// CHECK: sdy.mesh @mesh
// CHECK: func.func @main
// CHECK: func.func private @inner
// CHECK: func.func private @innermost
// CHECK: func.func @other
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @inner(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @innermost(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @innermost(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
func.func @other() {
  return
}

// -----

// A private function is dead if only itself or another dead function calls it.
// CHECK: func.func @main
// CHECK-NOT: func.func private
func.func @main() {
  return
}
func.func private @dead() {
  call @recursive() : () -> ()
  return
}
func.func private @recursive() {
  call @recursive() : () -> ()
  return
}

// -----

// References other than calls count, too.
// CHECK: func.func @main
// CHECK: func.func private @referenced
// CHECK-NOT: func.func private @dead
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @target(%arg0) {called_computations = [@referenced]} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @referenced(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
func.func private @dead() {
  return
}

// -----

// CHECK: module @inner
// CHECK-NOT: func.func private @dead
module @inner {
  func.func private @dead() {
    return
  }
}
