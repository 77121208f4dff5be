// RUN: shard-opt %s --sdy-export-pipeline='enable-insert-explicit-collectives=true inline-meshes=false dump-directory=%t' | FileCheck %s
// RUN: shard-opt %s --sdy-export-pipeline='enable-insert-explicit-collectives=true inline-meshes=false remove-all-gather-reduce-scatter-for-cmv1=true' | FileCheck %s --check-prefix=CMV1
// RUN: FileCheck %s --check-prefix=RESHARDS --input-file=%t/01.after_explicit_reshards.mlir
// RUN: FileCheck %s --check-prefix=COLLECTIVES --input-file=%t/02.after_partitioner_with_global_shapes.mlir

sdy.mesh @mesh = <["x"=2, "y"=2]>

// The sum of a matmul along a sharded dimension: a slice after a reduction along the same axis becomes one
// reduce-scatter.
// CHECK-LABEL: func @main
// CHECK-NEXT: %[[DOT:.*]] = stablehlo.dot %arg0, %arg1
// CHECK-NEXT: %[[SCATTER:.*]] = sdy.reduce_scatter [{}, {"y"}] %[[DOT]] out_sharding=<@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT: return %[[SCATTER]]

// CMV1-LABEL: func @main
// CMV1-NEXT: %[[DOT:.*]] = stablehlo.dot %arg0, %arg1
// CMV1-NEXT: return %[[DOT]]

// RESHARDS: %[[DOT:.*]] = stablehlo.dot
// RESHARDS-NEXT: %[[SUM:.*]] = sdy.all_reduce {"y"} %[[DOT]] out_sharding=<@mesh, [{"x"}, {}]>
// RESHARDS-NEXT: sdy.reshard %[[SUM]] <@mesh, [{"x"}, {"y"}]>

// COLLECTIVES: sdy.reduce_scatter
func.func @main(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The last of two consecutive constraints counts; the exchange goes directly to the returned sharding.
// CHECK-LABEL: func @constraints
// CHECK-NEXT: %[[PERMUTE:.*]] = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y"}, {}]>
// CHECK-NEXT: return %[[PERMUTE]]
func.func @constraints(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
