// RUN: shard-opt %s --spmd-pipeline=certificate=%t.json -o %t.mlir
// RUN: shard-check %s %t.mlir %t.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: shard-opt %s --spmd-pipeline='collectives=stablehlo certificate=%t.json' | shard-check %s - %t.json | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | sed 's/grid_axes = .1. scatter/grid_axes = [0] scatter/' > %t.other.mlir
// RUN: not shard-check %s %t.other.mlir %t.json 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: shard-opt %s --spmd-pipeline | sed 's/shard.reduce_scatter \(.*\) scatter_dim/shard.all_slice \1 slice_axis/' > %t.none.mlir
// RUN: not shard-check %s %t.none.mlir %t.json 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: echo '{"mesh": 3}' > %t.none.json
// RUN: not shard-check %s %t.mlir %t.none.json 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: proved:

// JSON: "mesh":{{\[\[}}"x",2],["y",2]]
// JSON-SAME: "main":{"arguments":{{\[\[\[}}"x"],["y"]],{{\[\[}}"y"],[]]],"results":{{\[\[\[}}"x"],[]]]

// REFUSED: .mlir:{{[0-9]+:[0-9]+}}: error: {{.*}} is not proved: result 0 is not the shard of the result of the global program
// REFUSED: not proved:

// NONE: it is not a certificate

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %w: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}
) -> (tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  %1 = stablehlo.tanh %0 : tensor<8x12xf32>
  return %1 : tensor<8x12xf32>
}
