// RUN: shard-opt %s --spmd-pipeline='collectives=stablehlo' | FileCheck %s

// A named computation is inlined; its operands and results are padded to even shards.
sdy.mesh @m = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<3x2xf32>) -> tensor<3x4xf32>
func.func @main(%a: tensor<3x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"a"}]>}) -> tensor<3x4xf32> {
  // CHECK: stablehlo.pad %arg0, {{.*}} -> tensor<4x2xf32>
  // CHECK-NOT: call @uneven
  %0 = sdy.named_computation<"uneven">(%a) in_shardings=[<@m, [{"a"}, {}]>] out_shardings=[<@m, [{"a"}, {}]>] (%b: tensor<3x4xf32>) {
    // CHECK: stablehlo.negate %{{.*}} : tensor<2x4xf32>
    %1 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>} : tensor<3x4xf32>
    sdy.return %1 : tensor<3x4xf32>
  } : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
