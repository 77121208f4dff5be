// RUN: shard-opt %s --split-input-file "--sdy-reshard-to-collectives=planner=optimal" | FileCheck %s
// RUN: shard-opt %s --split-input-file --spmd-pipeline | FileCheck --check-prefix=GRID %s
// RUN: shard-opt %s --split-input-file --spmd-pipeline=collectives=stablehlo | FileCheck --check-prefix=LOCAL %s

// The cheapest plans split "x" of 6 devices at 2 and at 3, but no grid has sub-axes for both: the second reshard has a
// plan that splits "x" at 2, too.

sdy.mesh @mesh = <["x"=6, "y"=2]>

// CHECK-LABEL: func.func @main
// CHECK: sdy.all_gather {{.*}}"x":(2)3
// CHECK-NOT: "x":(1)3
// CHECK: return

// GRID: shard.grid @mesh(shape = 2x3x2) {mlir_shard.axis_names = ["x:(1)2", "x:(2)3", "y"]}
// LOCAL: func.func @main(%arg0: tensor<4x12xf32>, %arg1: tensor<24x12xf32>) -> (tensor<24x2xf32>, tensor<12x4xf32>)
func.func @main(
    %a: tensor<24x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<24x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<24x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>},
        tensor<24x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  %0 = sdy.reshard %a <@mesh, [{}, {"y", "x"}]> : tensor<24x24xf32>
  %1 = sdy.reshard %b <@mesh, [{"y"}, {"x"}]> : tensor<24x24xf32>
  return %0, %1 : tensor<24x24xf32>, tensor<24x24xf32>
}

// -----

// Arguments of StableHLO's local programs have even shards, along sub-axes of one grid too.

sdy.mesh @mesh = <["x"=6]>

// LOCAL: func.func @sub_axes(%arg0: tensor<4xf32>, %arg1: tensor<9xf32>) -> (tensor<4xf32>, tensor<9xf32>)
func.func @sub_axes(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                    %b: tensor<9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<9xf32>) {
  %0 = stablehlo.tanh %a : tensor<8xf32>
  %1 = stablehlo.tanh %b : tensor<9xf32>
  return %0, %1 : tensor<8xf32>, tensor<9xf32>
}
