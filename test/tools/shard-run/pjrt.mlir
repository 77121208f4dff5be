// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-run --engine=pjrt --show=local --no-verify %s | FileCheck %s --check-prefix=LOCAL
// RUN: not shard-run --engine=pjrt %S/run.mlir 2>&1 | FileCheck %s --check-prefix=LINALG
// RUN: not shard-run --engine=pjrt --platform=nothing %s 2>&1 | FileCheck %s --check-prefix=PLATFORM
// RUN: not shard-run --engine=pjrt -n 2 %s 2>&1 | FileCheck %s --check-prefix=COUNT

// CHECK: @main on 4 devices, compared with it on one, without sharding:
// CHECK: 0       tensor<4xf32>  {{.*}} {{[0-9.e+-]+ +[0-9.e+-]+ +}}OK

// LOCAL: func.func @main(%arg0: tensor<2x3xf32>)
// LOCAL: "stablehlo.all_reduce"
// LOCAL: @main on 4 devices, not compared with anything:

// LINALG: run.mlir:24:11: error: 'arith.constant' cannot be run by PJRT, nor can {{.*}}linalg.
// LINALG-NEXT: shard-run: error: the program has ops outside of StableHLO, which PJRT cannot run; --engine=mpi may run it

// PLATFORM: PJRT has no platform 'nothing'
// COUNT: shard-run: error: the program is for 4 ranks, not 2

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sums = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %sums : tensor<4xf32>
}
