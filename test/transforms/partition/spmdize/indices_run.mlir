// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: sed 's/"x"=2, "y"=2/"x"=2, "y"=3/' %s | shard-run - | FileCheck %s
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s | shard-run --engine=pjrt - | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=LOCAL
// RUN: shard-opt %s --spmd-pipeline='collectives=stablehlo' | FileCheck %s --check-prefix=LOCAL

// Slices, concatenations, gathers and sorts along sharded dimensions, without gathers of the large tensors. Shards are
// uneven, and indices are out of bounds on both sides.
// CHECK: result
// CHECK-COUNT-13: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>
// LOCAL-NOT: all_gather{{.*}}tensor<{{[0-9]+}}x8xf32>
// LOCAL: func.func @main
func.func @main(
    %a: tensor<403x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<400x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>})
    -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x7xf32>, tensor<4x8xf32>, tensor<2x8xf32>,
        tensor<1x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
        tensor<400x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<202x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<403x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<405x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<403x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<403x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<5x8xf32>) {
  %before = stablehlo.constant dense<-2> : tensor<i32>
  %inside = stablehlo.constant dense<200> : tensor<i32>
  %behind = stablehlo.constant dense<402> : tensor<i32>
  // Each device finds the elements in its shard, and the devices sum their results.
  %0 = stablehlo.dynamic_slice %a, %before, %before, sizes = [3, 8]
      : (tensor<403x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
  %1 = stablehlo.dynamic_slice %a, %inside, %before, sizes = [3, 8]
      : (tensor<403x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
  %2 = stablehlo.dynamic_slice %b, %behind, %behind, sizes = [3, 7]
      : (tensor<400x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x7xf32>
  %3 = stablehlo.slice %a [200:204, 0:8] : (tensor<403x8xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.slice %b [99:300:200, 0:8] : (tensor<400x8xf32>) -> tensor<2x8xf32>
  %5 = stablehlo.slice %a [402:403, 0:8] : (tensor<403x8xf32>) -> tensor<1x8xf32>
  // Neighbours exchange the elements that a shard of the result needs in addition.
  %6 = stablehlo.slice %a [3:403, 0:8] : (tensor<403x8xf32>) -> tensor<400x8xf32>
  %7 = stablehlo.slice %a [0:403:2, 0:8] : (tensor<403x8xf32>) -> tensor<202x8xf32>
  %begin = stablehlo.slice %a [0:3, 0:8] : (tensor<403x8xf32>) -> tensor<3x8xf32>
  %8 = stablehlo.concatenate %6, %begin, dim = 0 : (tensor<400x8xf32>, tensor<3x8xf32>) -> tensor<403x8xf32>
  %9 = stablehlo.concatenate %4, %a, dim = 0 : (tensor<2x8xf32>, tensor<403x8xf32>) -> tensor<405x8xf32>
  // Along the other dimension, no exchange is needed.
  %10 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<403x8xf32>, tensor<403x8xf32>) -> tensor<403x16xf32>
  %11 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %less = stablehlo.compare LT, %left, %right : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<403x8xf32>) -> tensor<403x8xf32>
  %rows = stablehlo.constant dense<[[-1], [0], [402], [500], [201]]> : tensor<5x1xi32>
  %12 = "stablehlo.gather"(%a, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false,
      slice_sizes = array<i64: 1, 8>}> : (tensor<403x8xf32>, tensor<5x1xi32>) -> tensor<5x8xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12
      : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x7xf32>, tensor<4x8xf32>, tensor<2x8xf32>, tensor<1x8xf32>,
        tensor<400x8xf32>, tensor<202x8xf32>, tensor<403x8xf32>, tensor<405x8xf32>, tensor<403x16xf32>,
        tensor<403x8xf32>, tensor<5x8xf32>
}
