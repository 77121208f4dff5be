// If shards are even, a device receives the opposite shard of a reversed dimension.

// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --collectives=stablehlo %s | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo | FileCheck %s --check-prefix=LOCAL

// CHECK: result
// CHECK-COUNT-2: OK

sdy.mesh @mesh = <["x"=2, "y"=2]>

// LOCAL: %[[R:.*]] = stablehlo.reverse %arg0, dims = [0, 1] : tensor<4x3xf32>
// LOCAL-NEXT: "stablehlo.collective_permute"(%[[R]])
// LOCAL-SAME: source_target_pairs = dense<{{\[}}[0, 3], [1, 2], [2, 1], [3, 0]]>
// LOCAL: stablehlo.reverse %arg0, dims = [1]
// LOCAL-NEXT: "stablehlo.collective_permute"
// LOCAL-SAME: source_target_pairs = dense<{{\[}}[0, 1], [1, 0], [2, 3], [3, 2]]>
// LOCAL-NOT: all_gather
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
        tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.reverse %a, dims = [0, 1] : tensor<8x6xf32>
  %1 = stablehlo.reverse %a, dims = [1] : tensor<8x6xf32>
  return %0, %1 : tensor<8x6xf32>, tensor<8x6xf32>
}
