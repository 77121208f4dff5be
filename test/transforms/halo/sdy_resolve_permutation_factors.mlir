// RUN: shard-opt %s --sdy-resolve-permutation-factors | FileCheck %s
// RUN: shard-opt %s --sdy-resolve-permutation-factors='enable-halo-exchange=false' | FileCheck %s --check-prefix=WHOLE
// RUN: shard-opt %s --sdy-resolve-permutation-factors='replica-count=8' | FileCheck %s --check-prefix=REPLICAS
// RUN: not shard-opt %s --sdy-resolve-permutation-factors='replica-count=2 partition-count=4' 2>&1 | FileCheck %s --check-prefix=TOOMANY

// TOOMANY: error: 2 replicas of 4 partitions cannot be identified by one id: replica-count or partition-count must be 1
// REPLICAS: stablehlo.replica_id
// REPLICAS-NOT: stablehlo.partition_id

// CHECK: sdy.mesh @grid_reversed = <["x"=2, "y"=4], device_ids=[3, 2, 1, 0, 7, 6, 5, 4]>
sdy.mesh @grid = <["x"=2, "y"=4]>
sdy.mesh @line = <["x"=3], device_ids=[2, 0, 1]>

// The right neighbour's shard is appended to the local shard; each device slices its three elements from both.
// CHECK-LABEL: func @slice
// CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[LOCAL:.*]] = sdy.manual_computation(%arg0, %[[ZERO]]) in_shardings=[<@grid, [{"x"}]>, <@grid, []>]
// CHECK-SAME:   out_shardings=[<@grid, [{"x"}]>] manual_axes={"x"} (%[[OWN:.*]]: tensor<5xf32>, %[[FILL:.*]]: tensor<f32>) {
// CHECK-NEXT:   %[[LEFT:.*]] = "stablehlo.collective_permute"(%[[OWN]])
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[4, 0], [5, 1], [6, 2], [7, 3]]>
// CHECK-NEXT:   %[[BOTH:.*]] = stablehlo.concatenate %[[OWN]], %[[LEFT]], dim = 0
// CHECK-NEXT:   %[[BUFFER:.*]] = stablehlo.pad %[[BOTH]], %[[FILL]], low = [3], high = [3], interior = [0]
// CHECK:        %[[ID:.*]] = stablehlo.partition_id
// CHECK:        %[[PLACE:.*]] = stablehlo.dynamic_slice %[[BUFFER]], %{{.*}}, sizes = [3]
// CHECK-NEXT:   sdy.return %[[PLACE]]
// CHECK-NEXT: } : (tensor<10xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[LOCAL]]

// WHOLE-LABEL: func @slice
// WHOLE-NEXT: %[[GATHERED:.*]] = sdy.reshard %arg0 <@grid, [{}]>
// WHOLE-NEXT: %[[SLICED:.*]] = stablehlo.slice %[[GATHERED]] [3:9] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}]>]>}
// WHOLE-NEXT: %[[BACK:.*]] = sdy.reshard %[[SLICED]] <@grid, [{"x"}]>
// WHOLE-NEXT: return %[[BACK]]
func.func @slice(%a: tensor<10xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}]>}) -> tensor<6xf32> {
  %0 = stablehlo.slice %a [3:9] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}]>]>} : (tensor<10xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// Every second element is not a contiguous part of neighbouring shards.
// CHECK-LABEL: func @strided_slice
// CHECK-NEXT: %[[GATHERED:.*]] = sdy.reshard %arg0 <@grid, [{}]>
// CHECK-NEXT: stablehlo.slice %[[GATHERED]] [0:8:2]
func.func @strided_slice(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.slice %a [0:8:2] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The first device has no left neighbour: it takes ones instead of the zeros that it receives.
// CHECK-LABEL: func @pad_with_ones
// CHECK: sdy.manual_computation(%arg0, %cst)
// CHECK-SAME: manual_axes={"x"} (%[[OWN:.*]]: tensor<4x2xf32>, %[[ONE:.*]]: tensor<f32>) {
// CHECK-NEXT: %[[LEFT:.*]] = "stablehlo.collective_permute"(%[[OWN]])
// CHECK:      %[[HAS_LEFT:.*]] = stablehlo.compare GE
// CHECK-NEXT: %[[ONES:.*]] = stablehlo.broadcast_in_dim %[[ONE]], dims = [] : (tensor<f32>) -> tensor<4x2xf32>
// CHECK-NEXT: %[[FRONT:.*]] = stablehlo.select %[[HAS_LEFT]], %[[LEFT]], %[[ONES]]
// CHECK-NEXT: stablehlo.concatenate %[[FRONT]], %[[OWN]], dim = 0
// CHECK:      %[[TAKEN:.*]] = stablehlo.dynamic_slice %{{.*}}, sizes = [5, 2]
// The unsharded dimension is padded directly.
// CHECK-NEXT: stablehlo.pad %[[TAKEN]], %[[ONE]], low = [0, 1], high = [0, 0], interior = [0, 0]
func.func @pad_with_ones(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {}]>}) -> tensor<10x3xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [2, 1], high = [0, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}, {}]>]>} : (tensor<8x2xf32>, tensor<f32>) -> tensor<10x3xf32>
  return %0 : tensor<10x3xf32>
}

// Each shard is padded locally.
// CHECK-LABEL: func @pad_of_each_shard
// CHECK-NEXT: stablehlo.constant
// CHECK-NEXT: %[[PADDED:.*]] = stablehlo.pad %arg0
// CHECK-NEXT: return %[[PADDED]]
func.func @pad_of_each_shard(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}]>}) -> tensor<12xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [2], high = [2], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// All shards would go to all devices, over up to three hops.
// CHECK-LABEL: func @pad_over_all_shards
// CHECK: %[[GATHERED:.*]] = sdy.reshard %arg0 <@grid, [{}]>
// CHECK-NEXT: %[[PADDED:.*]] = stablehlo.pad %[[GATHERED]]
// CHECK-NEXT: sdy.reshard %[[PADDED]] <@grid, [{"y"}]>
func.func @pad_over_all_shards(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@grid, [{"y"}]>}) -> tensor<8xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [-3], high = [7], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"y"}]>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func @reverse
// CHECK-NEXT: %[[REVERSED:.*]] = stablehlo.reverse %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@grid_reversed, [{"y"}, {"x"}]>]>}
// CHECK-NEXT: %[[BACK:.*]] = sdy.reshard %[[REVERSED]] <@grid, [{"y"}, {"x"}]>
// CHECK-NEXT: return %[[BACK]]
func.func @reverse(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@grid, [{"y"}, {"x"}]>}) -> tensor<8x2xf32> {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"y"}, {"x"}]>]>} : tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// The devices are permuted. The last shard is one element short, and the shift moves its padding to the front.
// CHECK-LABEL: func @reverse_of_uneven_shards
// CHECK: %[[PADDED:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0], high = [1], interior = [0]
// CHECK-NEXT: %[[SHIFTED:.*]] = sdy.manual_computation(%[[PADDED]])
// CHECK-NEXT: %[[LEFT:.*]] = "stablehlo.collective_permute"(%arg1)
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[2, 0], [0, 1]]>
// CHECK-NEXT: %[[TAIL:.*]] = stablehlo.slice %[[LEFT]] [1:2]
// CHECK-NEXT: %[[HEAD:.*]] = stablehlo.slice %arg1 [0:1]
// CHECK-NEXT: stablehlo.concatenate %[[TAIL]], %[[HEAD]], dim = 0
// CHECK: stablehlo.reverse %[[SHIFTED]], dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@line_reversed, [{"x"}]>]>} : tensor<6xf32>
// CHECK-NEXT: %[[BACK:.*]] = sdy.reshard %{{.*}} <@line, [{"x"}]> : tensor<6xf32>
// CHECK-NEXT: stablehlo.slice %[[BACK]] [0:5]
func.func @reverse_of_uneven_shards(%a: tensor<5xf32> {sdy.sharding = #sdy.sharding<@line, [{"x"}]>}) -> tensor<5xf32> {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@line, [{"x"}]>]>} : tensor<5xf32>
  return %0 : tensor<5xf32>
}

// A sharded dimension that is not reversed needs no exchange.
// CHECK-LABEL: func @reverse_of_another_dimension
// CHECK-NEXT: %[[REVERSED:.*]] = stablehlo.reverse %arg0, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"y"}, {}]>]>}
// CHECK-NEXT: return %[[REVERSED]]
func.func @reverse_of_another_dimension(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@grid, [{"y"}, {}]>}) -> tensor<8x2xf32> {
  %0 = stablehlo.reverse %a, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"y"}, {}]>]>} : tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// Six elements on four devices are shards of two; rows of three are a shard of two and one of one.
// CHECK-LABEL: func @split
// CHECK: %[[EVEN:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0], high = [2], interior = [0]
// CHECK-NEXT: %[[LOCAL:.*]] = sdy.manual_computation(%[[EVEN]], %{{.*}}) in_shardings=[<@grid, [{"y"}]>, <@grid, []>] out_shardings=[<@grid, [{"y":(1)2}, {"y":(2)2}]>] manual_axes={"y"}
// A device that receives nothing gets the padding value, so no select is needed.
// CHECK: "stablehlo.collective_permute"
// CHECK-NOT: stablehlo.select
// CHECK: stablehlo.reshape %{{.*}} : (tensor<2xf32>) -> tensor<1x2xf32>
// CHECK: } : (tensor<8xf32>, tensor<f32>) -> tensor<2x4xf32>
// CHECK-NEXT: stablehlo.slice %[[LOCAL]] [0:2, 0:3]
func.func @split(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@grid, [{"y"}]>}) -> tensor<2x3xf32> {
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"y":(1)2}, {"y":(2)2}]>]>} : (tensor<6xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @join
// CHECK-NEXT: %[[GATHERED:.*]] = sdy.reshard %arg0 <@grid, [{}, {}]>
// CHECK-NEXT: %[[JOINED:.*]] = stablehlo.reshape %[[GATHERED]] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}]>]>}
// CHECK-NEXT: sdy.reshard %[[JOINED]] <@grid, [{"x", "y"}]>
func.func @join(%a: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {"y"}]>}) -> tensor<10xf32> {
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x", "y"}]>]>} : (tensor<2x5xf32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// Windows over a sharded dimension.
// CHECK-LABEL: func @window
// CHECK: %[[GATHERED:.*]] = sdy.reshard %arg0 <@grid, [{}, {"y"}]>
// CHECK: "stablehlo.reduce_window"(%[[GATHERED]]
// CHECK: sdy.reshard %{{.*}} <@grid, [{"x"}, {"y"}]> : tensor<7x8xf32>
func.func @window(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {"y"}]>}) -> tensor<7x8xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %c) ({
  ^bb0(%b: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.add %b, %d : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 2, 1>, sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}, {"y"}]>]>}
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<7x8xf32>
  return %0 : tensor<7x8xf32>
}
