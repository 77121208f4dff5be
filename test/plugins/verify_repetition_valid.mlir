// RUN: shard-opt %s --spmd-pipeline=verify-repetition=true | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline='collectives=stablehlo verify-repetition=true' | FileCheck %s

// A factor has the size of the source although the dimension is larger, because the windows are separate: rules of this
// package for computing ops need not have factors of the sizes of all dimensions.
// CHECK: stablehlo.select_and_scatter
// CHECK: (tensor<12xf32>, tensor<6xf32>, tensor<f32>) -> tensor<12xf32>
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %source: tensor<12xf32>, %init: tensor<f32>) -> tensor<24xf32> {
  %0 = "stablehlo.select_and_scatter"(%a, %source, %init) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%one: tensor<f32>, %other: tensor<f32>):
    %is_chosen = stablehlo.compare GE, %one, %other : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %is_chosen : tensor<i1>
  }, {
  ^bb0(%one: tensor<f32>, %other: tensor<f32>):
    %sum = stablehlo.add %one, %other : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<24xf32>, tensor<12xf32>, tensor<f32>) -> tensor<24xf32>
  return %0 : tensor<24xf32>
}
