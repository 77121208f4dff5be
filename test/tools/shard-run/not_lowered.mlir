// RUN: not shard-run %s 2>&1 | FileCheck %s

// CHECK: not_lowered.mlir:[[# @LINE + 7]]:13: error: 'stablehlo.custom_call:factor' has no lowering to LLVM
// CHECK: shard-run: error: the program cannot be lowered to LLVM; --engine=pjrt may run it
// CHECK-NOT: Traceback

sdy.mesh @mesh = <["x"=2]>

func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %factor = stablehlo.custom_call @factor(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %factor : tensor<4x4xf32>
}
