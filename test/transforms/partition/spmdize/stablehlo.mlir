// Local programs with StableHLO's collectives contain only ops of StableHLO and func.

// RUN: shard-opt %s --spmdize=collectives=stablehlo --cse | FileCheck %s
// RUN: shard-opt %s --spmdize=collectives=stablehlo | FileCheck %s --check-prefix=ONLY

// ONLY-NOT: {{arith\.|tensor\.|linalg\.|sdy\.|shard\.}}

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Padding does not change sums.
// CHECK-LABEL: func.func @uneven(%arg0: tensor<3x4xf32>) -> tensor<2xf32>
// CHECK: %[[SIZES:.*]] = stablehlo.constant dense<[5, 5, 2, 2]> : tensor<4xi64>
// CHECK: %[[SIZE:.*]] = stablehlo.dynamic_slice %[[SIZES]], %{{.*}}, sizes = [1]
// CHECK: %[[INSIDE:.*]] = stablehlo.compare LT, %{{.*}}, %{{.*}} : (tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi1>
// CHECK: %[[MASKED:.*]] = stablehlo.select %[[INSIDE]], %arg0, %{{.*}}
// CHECK: stablehlo.reduce(%[[MASKED]] init:
// CHECK: "stablehlo.reduce_scatter"
func.func @uneven(%a: tensor<5x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<5x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Only the border of a neighbour is sent.
// CHECK-LABEL: func.func @window(%arg0: tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[BORDER:.*]] = stablehlo.slice %arg0 [0:1]
// CHECK: %[[SENT:.*]] = "stablehlo.collective_permute"(%[[BORDER]])
// CHECK-SAME: source_target_pairs = dense<{{\[}}[2, 0], [3, 1]]>
// CHECK: stablehlo.concatenate %arg0, %[[SENT]]
func.func @window(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
