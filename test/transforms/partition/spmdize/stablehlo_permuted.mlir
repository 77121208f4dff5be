// Shards of a single mesh stay on their devices, whatever the order of the mesh's device ids.

// RUN: shard-opt %s --spmdize=collectives=stablehlo | FileCheck %s
// RUN: shard-run %s | FileCheck %s --check-prefix=DONE
// RUN: shard-run --collectives=stablehlo %s | FileCheck %s --check-prefix=DONE

// DONE: OK

sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[1, 0, 2, 3]>

// CHECK: "stablehlo.all_gather"(%arg0)
// CHECK-SAME: replica_groups = dense<{{\[}}[1, 2], [0, 3]]>
// CHECK-NOT: collective_permute
func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %0 = sdy.reshard %a <@mesh, [{}, {"y"}]> : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
