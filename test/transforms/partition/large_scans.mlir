// RUN: shard-opt %s --spmd-pipeline | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo | FileCheck %s --check-prefix=STABLEHLO

// A cumulative sum and a product of large tensors exchange totals of shards: the tensors, which could be resharded to
// another dimension, do not move.
sdy.mesh @mesh = <["x"=8]>

// CHECK-NOT: all_to_all
// CHECK: shard.all_gather
// CHECK-NOT: all_to_all
// STABLEHLO-NOT: all_to_all
// STABLEHLO: stablehlo.all_gather
// STABLEHLO-NOT: all_to_all
func.func @main(%a: tensor<65536x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<65536x512xf32>, tensor<512xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 65536, 1>, padding = dense<[[65535, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<65536x512xf32>, tensor<f32>) -> tensor<65536x512xf32>
  %1 = stablehlo.reduce(%a init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<65536x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %0, %1 : tensor<65536x512xf32>, tensor<512xf32>
}
