// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=SHARD
// RUN: shard-opt %s --spmd-pipeline='collectives=stablehlo' | FileCheck %s --check-prefix=HLO
// RUN: not shard-opt %s --spmd-pipeline='collectives=nccl' 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: error: {{.*}}'nccl'

// The contracted dimension is sharded along "y", so the partial products are summed along "y".

sdy.mesh @mesh = <["x"=2, "y"=2]>

// SHARD: shard.grid @mesh(shape = 2x2)
// SHARD: func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<4x4xf32>
// SHARD-NEXT: %[[DOT:.*]] = stablehlo.dot_general {{.*}} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
// SHARD-NEXT: shard.all_reduce %[[DOT]] on @mesh grid_axes = [1]

// HLO-NOT: sdy
// HLO: func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<4x4xf32>
// HLO-NEXT: %[[DOT:.*]] = stablehlo.dot_general {{.*}} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
// HLO-NEXT: "stablehlo.all_reduce"(%[[DOT]]) {{.*}}replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// HLO-NOT: sdy
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
