// RUN: shard-opt %s --sdy-aggressive-propagate | FileCheck %s
// RUN: shard-opt %s --sdy-aggressive-propagate=propagation-strategy=basic | FileCheck %s --check-prefix=BASIC
// RUN: shard-opt %s --sdy-aggressive-propagate=propagation-strategy=basic-then-aggressive | FileCheck %s --check-prefix=BOTH

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A closed operand keeps its sharding, and the others are sharded.
// CHECK-LABEL: func.func @closed
// CHECK-NEXT: stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}
// BASIC-LABEL: func.func @closed
// BASIC-NEXT: stablehlo.add %arg0, %arg1 : tensor<8xf32>
// BOTH-LABEL: func.func @closed
// BOTH-NEXT: stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}
func.func @closed(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Rows and columns compete for the same axis; the larger operand decides for the columns.
// CHECK-LABEL: func.func @larger
// CHECK-NEXT: stablehlo.dot_general
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// BASIC-LABEL: func.func @larger
// BASIC-NEXT: stablehlo.dot_general
// BASIC-NOT: sdy.sharding
// BASIC: return
func.func @larger(
    %a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
    %b: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>}) -> tensor<4x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
