// RUN: shard-opt %s --shard-spmdize=collectives=stablehlo | FileCheck %s

sdy.mesh @eight = <["x"=8]>
sdy.mesh @six = <["y"=2, "z"=3]>

// Three devices reduce a third each of five elements, which are padded with a zero.
// CHECK-LABEL: func.func @sum
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%arg0 init: %[[ZERO]])
// CHECK: %[[FLAT:.*]] = stablehlo.reshape %[[SUM]]
// CHECK: stablehlo.pad %[[FLAT]], %[[ZERO]], low = [0], high = [1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
func.func @sum(%a: tensor<6x5xf32> {sdy.sharding = #sdy.sharding<@six, [{"z"}, {}]>},
               %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@eight, [{"x"}, {}]>})
    -> (tensor<5xf32>, tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@eight, [{"x"}, {}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<6x5xf32>, tensor<f32>) -> tensor<5xf32>
  return %0, %b : tensor<5xf32>, tensor<8x6xf32>
}
