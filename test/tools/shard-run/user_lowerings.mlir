// RUN: shard-run --load %S/Inputs/kernels.py --show=local %s | FileCheck %s
// RUN: shard-run --load %S/Inputs/kernels.py --engine=pjrt %s | FileCheck %s --check-prefix=RESULT
// RUN: not shard-run %s 2>&1 | FileCheck %s --check-prefix=MISSING

// Custom calls and composites run by the lowerings for their targets and names, and a composite without a rule by its
// decomposition. The reduced factor of a rule is summed. Attributes of unloaded dialects are not passed to engines.

// CHECK: func.func @main(%arg0: tensor<32x8xf32>{{.*}} {ttcore.shard_status = #ttcore.shard_status<presharded>}
// CHECK: stablehlo.custom_call @dispatch{{.*}} (tensor<32x8xf32>, tensor<32x6xf32>) -> tensor<8x6xf32>
// CHECK: reduce
// CHECK: @main on 2 ranks
// CHECK: 0 {{.*}}OK
// RESULT: @main on 2 devices
// RESULT: 0 {{.*}}OK

// MISSING: user_lowerings.mlir:[[# @LINE + 8]]:8: error: 'stablehlo.custom_call:dispatch' has no lowering to LLVM
// MISSING: shard-run: error: {{.*}}mlir_shard.interfaces.lowering

sdy.mesh @mesh = <["x"=2]>

func.func @main(%a: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %b: tensor<64x6xf32>)
    -> (tensor<8x6xf32> {ttcore.shard_status = #ttcore.shard_status<unsharded>}) {
  %0 = stablehlo.composite "my.square" %a {decomposition = @square, tt.note = #tt<note>} : (tensor<64x8xf32>) -> tensor<64x8xf32>
  %1 = stablehlo.custom_call @dispatch(%0, %b) : (tensor<64x8xf32>, tensor<64x6xf32>) -> tensor<8x6xf32>
  %2 = stablehlo.composite "my.erf" %1 {decomposition = @erf} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

func.func private @square(%a: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %0 = stablehlo.multiply %a, %a : tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

func.func private @erf(%a: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %0 = chlo.erf %a : tensor<8x6xf32> -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
