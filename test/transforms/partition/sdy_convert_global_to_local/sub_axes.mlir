// RUN: shard-opt %s --sdy-convert-global-to-local | FileCheck %s

// Tensors may be sharded along sub-axes of one axis whose sizes do not divide each other.
sdy.mesh @mesh = <["a"=2, "p"=6]>

// CHECK-LABEL: func @apart(
// CHECK-SAME:      %[[X:.*]]: tensor<6x6xf32> {{{.*}}}, %[[Y:.*]]: tensor<12x2xf32>
// CHECK-SAME:      -> (tensor<12x6xf32> {{{.*}}}, tensor<12x6xf32>
// CHECK-NEXT:    "stablehlo.all_gather"(%[[X]]) <{all_gather_dim = 0 : i64
// CHECK-SAME{LITERAL}: dense<[[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]>
// CHECK-NEXT:    "stablehlo.all_gather"(%[[Y]]) <{all_gather_dim = 1 : i64
// CHECK-SAME{LITERAL}: dense<[[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]>
func.func @apart(%x: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(1)2}, {"a"}]>},
                 %y: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a", "p":(1)3}]>})
    -> (tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>},
        tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
  %0 = sdy.all_gather [{"p":(1)2}, {}] %x out_sharding=<@mesh, [{}, {"a"}]> : tensor<12x12xf32>
  %1 = sdy.all_gather [{}, {"p":(1)3}] %y out_sharding=<@mesh, [{}, {"a"}]> : tensor<12x12xf32>
  return %0, %1 : tensor<12x12xf32>, tensor<12x12xf32>
}
