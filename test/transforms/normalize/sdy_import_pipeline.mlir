// RUN: shard-opt %s --sdy-import-pipeline | FileCheck %s
// RUN: shard-opt %s --sdy-import-pipeline=dedup-functions-fully=true | FileCheck %s --check-prefix=DEDUP

// An inlined mesh gets a name, axes of size one are removed from shardings, each use of a constant gets its own
// constant, each value of a loop gets an edge, and a private function without calls is erased. Constraints are applied
// after calls are imported, unless functions are kept.

// CHECK-NOT: @never_called
// CHECK: sdy.mesh @[[MESH:.*]] = <["x"=2, "one"=1]>
// CHECK: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@[[MESH]], [{"x"}]>})
// CHECK: sdy.constant
// CHECK: sdy.constant
// CHECK: stablehlo.multiply %{{[^ ]*}}, %{{[^ ]*}} : tensor<8xf32>
// CHECK: sdy.sharding_constraint
// CHECK: stablehlo.while
// CHECK: sdy.data_flow_edge
// DEDUP: stablehlo.multiply %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
func.func private @never_called()

func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2, "one"=1]>, [{"x", "one"}]>}) -> tensor<8xf32> {
  %ones = stablehlo.constant dense<1.0> : tensor<8xf32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %step = stablehlo.constant dense<1> : tensor<i32>
  %a = stablehlo.add %x, %ones : tensor<8xf32>
  %b = stablehlo.multiply %a, %ones : tensor<8xf32>
  %c = sdy.sharding_constraint %b <mesh<["x"=2, "one"=1]>, [{"x"}]> : tensor<8xf32>
  %r:2 = stablehlo.while(%i = %zero, %v = %c) : tensor<i32>, tensor<8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %step : tensor<i32>
    %twice = stablehlo.add %v, %v : tensor<8xf32>
    stablehlo.return %next, %twice : tensor<i32>, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}
