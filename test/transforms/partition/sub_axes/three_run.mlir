// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=SHARD

// Sub-axes of 4, 6 and 9 of 36 devices, no two of which can be in one grid.
// CHECK: @main on 36
// CHECK: OK
// CHECK: OK
// SHARD: shard.grid @{{.*}}(shape = 2x2x3x3)
sdy.mesh @mesh = <["z"=36]>
func.func @main(%a: tensor<72x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)4}, {}]>},
                %b: tensor<72x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)6}, {}]>},
                %c: tensor<72x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)9}, {}]>})
    -> (tensor<72x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)9}, {}]>}, tensor<72x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)4}, {}]>}) {
  %0 = stablehlo.add %a, %b : tensor<72x8xf32>
  %1 = stablehlo.multiply %0, %c : tensor<72x8xf32>
  return %1, %0 : tensor<72x8xf32>, tensor<72x8xf32>
}
