// RUN: shard-run %s --verify-repetition | FileCheck %s --check-prefix=PURE
// RUN: shard-run %s --verify-repetition --collectives=stablehlo | FileCheck %s --check-prefix=PURE
// RUN: not shard-run %s --verify-repetition --pipeline='cse;cse' 2>&1 | FileCheck %s --check-prefix=PIPELINE

// The rules of this project are pure; test/plugins/verify_repetition.mlir has an impure one.
// PURE: tensor<8xf32> {{.*}} OK
// PIPELINE: shard-run: error: --verify-repetition is not allowed with --pipeline: set the option on a pass of the pipeline
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = math.sqrt %a : tensor<8xf32>
  %1 = math.sqrt %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
