// RUN: shard-opt %s --sdy-propagation-pipeline | FileCheck %s

// The cost does not depend on the number of devices, because no data is built for each of them.

// CHECK: sdy.mesh @mesh = <["x"=100000, "y"=100000]>
sdy.mesh @mesh = <["x"=100000, "y"=100000]>

// CHECK: stablehlo.dot_general
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
func.func @main(
    %a: tensor<200000x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
    %b: tensor<8x200000xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) -> tensor<200000x200000xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<200000x8xf32>, tensor<8x200000xf32>) -> tensor<200000x200000xf32>
  return %0 : tensor<200000x200000xf32>
}
