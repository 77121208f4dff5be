// RUN: shard-run %s | FileCheck %s
// RUN: shard-run %s --collectives=stablehlo | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// Gathers and scatters with the positions of the batch as indices compute the same, and move nothing.
sdy.mesh @mesh = <["x"=2]>

// CHECK-COUNT-2: OK
// LOCAL-NOT: shard.all
func.func @main(%x: tensor<4x16x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}, %at: tensor<4x3x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}, %new: tensor<4x3x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> (tensor<4x3x2xf32>, tensor<4x16x2xf32>) {
  %n = stablehlo.iota dim = 0 : tensor<4x3x1xi32>
  %i = stablehlo.concatenate %at, %n, dim = 2 : (tensor<4x3x1xi32>, tensor<4x3x1xi32>) -> tensor<4x3x2xi32>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 2>}> : (tensor<4x16x2xf32>, tensor<4x3x2xi32>) -> tensor<4x3x2xf32>
  %1 = "stablehlo.scatter"(%x, %i, %new) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x16x2xf32>, tensor<4x3x2xi32>, tensor<4x3x2xf32>) -> tensor<4x16x2xf32>
  return %0, %1 : tensor<4x3x2xf32>, tensor<4x16x2xf32>
}
