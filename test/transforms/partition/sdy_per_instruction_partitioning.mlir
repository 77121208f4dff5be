// RUN: shard-opt %s --sdy-per-instruction-partitioning | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: shard-opt %s --sdy-per-instruction-partitioning='filter=dot,slice' | FileCheck %s --check-prefixes=CHECK,NAMES
// RUN: shard-opt %s --sdy-per-instruction-partitioning="filter='selectLow=1, selectHigh=1'" | FileCheck %s --check-prefix=SECOND
// RUN: shard-opt %s --sdy-per-instruction-partitioning='filter=slice enable-halo-exchange=false' | FileCheck %s --check-prefix=WHOLE

sdy.mesh @mesh = <["x"=2, "y"=4]>

// The sum over "y" is in the manual computation; the sum with the bias is another op.
// CHECK-LABEL: func @dot
// CHECK-NEXT: %[[DOT:.*]] = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}, {}]>]
// CHECK-SAME:   out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%[[A:.*]]: tensor<2x2xf32>, %[[B:.*]]: tensor<2x6xf32>) {
// CHECK-NEXT:   %[[PARTIAL:.*]] = stablehlo.dot %[[A]], %[[B]] : (tensor<2x2xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:   "stablehlo.all_reduce"(%[[PARTIAL]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]>
// CHECK:      } : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
// ALL-NEXT:   sdy.manual_computation(%[[DOT]], %[[DOT]])
// ALL-SAME:     manual_axes={"x"}
// ALL-NEXT:     stablehlo.add %{{.*}} : tensor<2x6xf32>
// NAMES-NEXT: stablehlo.add %[[DOT]], %[[DOT]] {sdy.sharding
// SECOND-LABEL: func @dot
// SECOND-NEXT: %[[DOT:.*]] = stablehlo.dot
// SECOND-NEXT: sdy.manual_computation(%[[DOT]], %[[DOT]])
func.func @dot(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
               %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<4x6xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.add %0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// Three rows on two devices need one row of padding, which is sliced off afterwards.
// CHECK-LABEL: func @uneven_dot
// CHECK: %[[EVEN:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0, 0], high = [1, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
// CHECK-NEXT: %[[DOT:.*]] = sdy.manual_computation(%[[EVEN]], %arg1)
// CHECK: } : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: stablehlo.slice %[[DOT]] [0:3, 0:6]
func.func @uneven_dot(%a: tensor<3x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8x6xf32>) -> tensor<3x6xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<3x8xf32>, tensor<8x6xf32>) -> tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}

// CHECK-LABEL: func @slice
// CHECK: sdy.manual_computation(%arg0, %{{.*}})
// CHECK: stablehlo.dynamic_slice
// CHECK-SAME: sizes = [3]
// WHOLE-LABEL: func @slice
// WHOLE: sdy.manual_computation(%arg0)
// WHOLE-NEXT: %[[GATHERED:.*]] = "stablehlo.all_gather"(%{{.*}}) <{all_gather_dim = 0 : i64
// WHOLE-NEXT: %[[SLICED:.*]] = stablehlo.slice %[[GATHERED]] [3:9]
// WHOLE: %[[BLOCK:.*]] = stablehlo.dynamic_slice %[[SLICED]], %{{.*}}, sizes = [3]
// WHOLE-NEXT: sdy.return %[[BLOCK]]
func.func @slice(%a: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
  %0 = stablehlo.slice %a [3:9] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<10xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// The opposite device receives the reversed shard.
// ALL-LABEL: func @reverse
// ALL-NEXT: sdy.manual_computation(%arg0)
// ALL-NEXT: %[[BLOCK:.*]] = stablehlo.reverse %{{.*}}, dims = [0] : tensor<4xf32>
// ALL-NEXT: %[[OPPOSITE:.*]] = "stablehlo.collective_permute"(%[[BLOCK]])
// ALL-SAME{LITERAL}: source_target_pairs = dense<[[0, 4], [1, 5], [2, 6], [3, 7], [4, 0], [5, 1], [6, 2], [7, 3]]>
// ALL-NEXT: sdy.return %[[OPPOSITE]]
func.func @reverse(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// ALL-LABEL: func @reshard
// ALL-NEXT: sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>]
// ALL-NEXT: "stablehlo.all_to_all"(%{{.*}}) <{channel_handle = {{.*}}, concat_dimension = 0 : i64
// ALL-SAME: split_count = 4 : i64, split_dimension = 1 : i64}> : (tensor<1x8xf32>) -> tensor<4x2xf32>
func.func @reshard(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %a <@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A splat is a splat on each device; another constant is sliced on each device.
// ALL-LABEL: func @constants
// ALL: stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// ALL: %[[ALL:.*]] = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// ALL: stablehlo.dynamic_slice %[[ALL]], %{{.*}}, sizes = [2]
func.func @constants() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<4xf32>
  %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// The padding of a maximum is the smallest value.
// ALL-LABEL: func @largest
// ALL: %[[EVEN:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0], high = [1]
// ALL-NEXT: sdy.manual_computation(%[[EVEN]], %{{.*}})
// ALL: stablehlo.constant dense<0xFF800000>
// ALL: %[[MASKED:.*]] = stablehlo.select %{{.*}} : tensor<2xi1>, tensor<2xf32>
// ALL-NEXT: %[[LOCAL:.*]] = stablehlo.reduce(%[[MASKED]] init: %{{.*}}) applies stablehlo.maximum
// ALL-NEXT: "stablehlo.all_reduce"(%[[LOCAL]])
func.func @largest(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<f32> {
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.maximum across dimensions = [0] : (tensor<7xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
