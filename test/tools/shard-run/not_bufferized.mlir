// RUN: not shard-run %s 2>&1 | FileCheck %s
// RUN: not shard-run --engine=pjrt %s 2>&1 | FileCheck %s --check-prefix=PJRT

sdy.mesh @mesh = <["x"=2]>

func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %i: tensor<3x1xindex>)
    -> tensor<8x4xf32> {
  // CHECK: not_bufferized.mlir:[[# @LINE + 6]]:8: error: 'tensor.gather' has no lowering to LLVM: use stablehlo.gather, or
  // CHECK-SAME: linalg.generic with tensor.extract, or register a lowering with @mlir_shard.interfaces.lowering("tensor.gather")
  // CHECK-NOT: note:
  // CHECK: shard-run: error: the program cannot be lowered to LLVM
  // PJRT: not_bufferized.mlir:[[# @LINE + 2]]:8: error: 'tensor.gather' cannot be run by PJRT, nor can tensor.collapse_shape,
  // PJRT-SAME: tensor.scatter
  %0 = tensor.gather %a[%i] gather_dims([0]) : (tensor<8x4xf32>, tensor<3x1xindex>) -> tensor<3x1x4xf32>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<3x1x4xf32> into tensor<3x4xf32>
  %2 = tensor.scatter %1 into %a[%i] scatter_dims([0]) unique
      : (tensor<3x4xf32>, tensor<8x4xf32>, tensor<3x1xindex>) -> tensor<8x4xf32>
  // PJRT-NEXT: shard-run: error: the program has ops outside of StableHLO, which PJRT cannot run; --engine=mpi may run it
  return %2 : tensor<8x4xf32>
}
