// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=SHARD

// Sub-axes of two axes at once; one of them shards another dimension of the result.
// CHECK: @main on 36
// CHECK: OK
// SHARD: shard.grid @{{.*}}(shape = 
sdy.mesh @mesh = <["z"=6,"w"=6]>
func.func @main(%a: tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)2}, {"w":(1)3}]>},
                %b: tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)3}, {"w":(1)2}]>})
    -> (tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"w":(1)2}, {"z":(1)2}]>}) {
  %0 = stablehlo.add %a, %b : tensor<24x12xf32>
  return %0 : tensor<24x12xf32>
}
