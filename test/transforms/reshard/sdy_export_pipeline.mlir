// RUN: shard-opt %s --sdy-export-pipeline='inline-meshes=false dump-directory=%t' | FileCheck %s
// RUN: FileCheck %s --check-prefix=PROPAGATED --input-file=%t/00.after_propagation.mlir
// RUN: FileCheck %s --check-prefix=PROPAGATED --input-file=%t/01.after_minimal_partitioner_with_global_shapes.mlir
// RUN: shard-opt %s --sdy-export-pipeline='avoid-export-for-partitioning=true keep-sharding-rules=true update-non-divisible-input-output-shardings=false' | FileCheck %s --check-prefix=AGAIN
// RUN: shard-opt %s --sdy-export-pipeline | FileCheck %s --check-prefix=INLINED

// INLINED-NOT: sdy.mesh
// INLINED: #sdy.sharding<mesh<["x"=2, "y"=4]>, [{"x"}]>
sdy.mesh @mesh = <["x"=2, "y"=4]>

// Uneven and split axes are removed at the boundary, all is closed, and edges, groups, rules and constraints are gone.
// CHECK: func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// CHECK-SAME: -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// CHECK-NEXT: %[[BARRIER:.*]] = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} %arg0
// CHECK-NEXT: %[[NEG:.*]] = stablehlo.negate %[[BARRIER]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: %[[RESHARD:.*]] = sdy.reshard %[[NEG]] <@mesh, [{}]>
// CHECK-NEXT: return %[[RESHARD]]

// PROPAGATED: stablehlo.negate
// PROPAGATED-SAME: sdy.sharding_rule
// PROPAGATED-NOT: sdy.sharding_group
// PROPAGATED: sdy.reshard

// AGAIN: %arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}]>}
// AGAIN: stablehlo.negate
// AGAIN-SAME: sdy.sharding_rule
// AGAIN: sdy.sharding_group
// AGAIN: sdy.sharding_constraint
func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2, ?}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}) {
  %0 = stablehlo.optimization_barrier %a : tensor<6xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x", ?}]> : tensor<6xf32>
  %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=6}>} : tensor<6xf32>
  sdy.sharding_group %2 group_id=0 : tensor<6xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{}]> : tensor<6xf32>
  return %3 : tensor<6xf32>
}
