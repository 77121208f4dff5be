// RUN: shard-opt %s --shard-rotate-shards | FileCheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>
sdy.mesh @large = <["x"=100000]>

// The last element of a shard moves to the next shard, that of the last shard to the first.
// CHECK-LABEL: func.func @forwards
// CHECK-NEXT: %[[MANUAL:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>]
// CHECK-SAME: out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%[[SHARD:.*]]: tensor<2x6xf32>) {
// CHECK-NEXT:   %[[LAST:.*]] = stablehlo.slice %[[SHARD]] [1:2, 0:6] {{.*}}<@mesh, [{}, {"y"}]>
// CHECK-NEXT:   %[[SENT:.*]] = "stablehlo.collective_permute"(%[[LAST]])
// CHECK-SAME:     dense<{{\[\[}}0, 2], [1, 3], [2, 4], [3, 5], [4, 6], [5, 7], [6, 0], [7, 1]]>
// CHECK-NEXT:   %[[REST:.*]] = stablehlo.slice %[[SHARD]] [0:1, 0:6]
// CHECK-NEXT:   %[[ROTATED:.*]] = stablehlo.concatenate %[[SENT]], %[[REST]], dim = 0
// CHECK-NEXT:   sdy.return %[[ROTATED]]
// CHECK-NEXT: } : (tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: return %[[MANUAL]]
func.func @forwards(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x6xf32> {
  %0 = stablehlo.slice %a [7:8, 0:6] : (tensor<8x6xf32>) -> tensor<1x6xf32>
  %1 = stablehlo.slice %a [0:7, 0:6] : (tensor<8x6xf32>) -> tensor<7x6xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<1x6xf32>, tensor<7x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// A rotation by seven of eight elements is one backwards: the first element moves to the shard before.
// CHECK-LABEL: func.func @backwards
// CHECK: %[[FIRST:.*]] = stablehlo.slice %{{.*}} [0:1, 0:6]
// CHECK-NEXT: %[[SENT:.*]] = "stablehlo.collective_permute"(%[[FIRST]])
// CHECK-SAME:   dense<{{\[\[}}0, 6], [1, 7], [2, 0], [3, 1], [4, 2], [5, 3], [6, 4], [7, 5]]>
// CHECK-NEXT: stablehlo.concatenate %{{.*}}, %[[SENT]], dim = 0
func.func @backwards(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x6xf32> {
  %0 = stablehlo.slice %a [1:8, 0:6] : (tensor<8x6xf32>) -> tensor<7x6xf32>
  %1 = stablehlo.slice %a [0:1, 0:6] : (tensor<8x6xf32>) -> tensor<1x6xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<7x6xf32>, tensor<1x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// Entire shards move, here along both axes, and a rotation of a rotation is replaced too.
// CHECK-LABEL: func.func @shards
// CHECK: manual_axes={"x", "y"} (%[[SHARD:.*]]: tensor<1x6xf32>) {
// CHECK-NEXT: "stablehlo.collective_permute"(%[[SHARD]])
// CHECK-SAME:   dense<{{\[\[}}0, 2], [1, 3], [2, 4], [3, 5], [4, 6], [5, 7], [6, 0], [7, 1]]>
// CHECK-NEXT: sdy.return
// CHECK: manual_axes={"x", "y"}
// CHECK: "stablehlo.collective_permute"
// CHECK-NOT: stablehlo.concatenate
func.func @shards(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<8x6xf32> {
  %0 = stablehlo.slice %a [6:8, 0:6] : (tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = stablehlo.slice %a [0:6, 0:6] : (tensor<8x6xf32>) -> tensor<6x6xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %3 = stablehlo.slice %2 [6:8, 0:6] : (tensor<8x6xf32>) -> tensor<2x6xf32>
  %4 = stablehlo.slice %2 [0:6, 0:6] : (tensor<8x6xf32>) -> tensor<6x6xf32>
  %5 = stablehlo.concatenate %3, %4, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  return %5 : tensor<8x6xf32>
}

// If two dimensions have parts of one axis, all axes are manual.
// CHECK-LABEL: func.func @sub_axes
// CHECK: manual_axes={"x"} (%{{.*}}: tensor<4x3xf32>) {
// CHECK-NEXT: stablehlo.slice %{{.*}} [3:4, 0:3]
// CHECK-NEXT: "stablehlo.collective_permute"
// CHECK-SAME:   dense<{{\[\[}}0, 4], [1, 5], [2, 6], [3, 7], [4, 0], [5, 1], [6, 2], [7, 3]]>
func.func @sub_axes(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)2}]>}) -> tensor<8x6xf32> {
  %0 = stablehlo.slice %a [7:8, 0:6] : (tensor<8x6xf32>) -> tensor<1x6xf32>
  %1 = stablehlo.slice %a [0:7, 0:6] : (tensor<8x6xf32>) -> tensor<7x6xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x":(1)2}, {"x":(2)2}]>]>} : (tensor<1x6xf32>, tensor<7x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// Not replaced: uneven shards, another sharding of the tensor, a mesh with too many devices to list,
// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: sdy.manual_computation
// CHECK: return
func.func @unchanged(
    %a: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %c: tensor<200000xf32> {sdy.sharding = #sdy.sharding<@large, [{"x"}]>})
    -> (tensor<6x6xf32>, tensor<8x6xf32>, tensor<200000xf32>) {
  %0 = stablehlo.slice %a [5:6, 0:6] : (tensor<6x6xf32>) -> tensor<1x6xf32>
  %1 = stablehlo.slice %a [0:5, 0:6] : (tensor<6x6xf32>) -> tensor<5x6xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<1x6xf32>, tensor<5x6xf32>) -> tensor<6x6xf32>
  %3 = stablehlo.slice %b [7:8, 0:6] : (tensor<8x6xf32>) -> tensor<1x6xf32>
  %4 = stablehlo.slice %b [0:7, 0:6] : (tensor<8x6xf32>) -> tensor<7x6xf32>
  %5 = stablehlo.concatenate %3, %4, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<1x6xf32>, tensor<7x6xf32>) -> tensor<8x6xf32>
  %6 = stablehlo.slice %c [199999:200000] : (tensor<200000xf32>) -> tensor<1xf32>
  %7 = stablehlo.slice %c [0:199999] : (tensor<200000xf32>) -> tensor<199999xf32>
  %8 = stablehlo.concatenate %6, %7, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@large, [{"x"}]>]>} : (tensor<1xf32>, tensor<199999xf32>) -> tensor<200000xf32>
  return %2, %5, %8 : tensor<6x6xf32>, tensor<8x6xf32>, tensor<200000xf32>
}

// and other concatenations: of slices in their order, of two tensors, of elements with strides, and of three parts.
// CHECK-LABEL: func.func @others
// CHECK-NOT: sdy.manual_computation
// CHECK: return
func.func @others(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %first = stablehlo.slice %a [0:1] : (tensor<8xf32>) -> tensor<1xf32>
  %last = stablehlo.slice %a [7:8] : (tensor<8xf32>) -> tensor<1xf32>
  %front = stablehlo.slice %a [0:7] : (tensor<8xf32>) -> tensor<7xf32>
  %rear = stablehlo.slice %a [1:8] : (tensor<8xf32>) -> tensor<7xf32>
  %middle = stablehlo.slice %a [1:7] : (tensor<8xf32>) -> tensor<6xf32>
  %of_b = stablehlo.slice %b [7:8] : (tensor<8xf32>) -> tensor<1xf32>
  %odd = stablehlo.slice %a [1:8:2] : (tensor<8xf32>) -> tensor<4xf32>
  %even = stablehlo.slice %a [0:8:2] : (tensor<8xf32>) -> tensor<4xf32>
  %0 = stablehlo.concatenate %first, %rear, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<7xf32>) -> tensor<8xf32>
  %1 = stablehlo.concatenate %of_b, %front, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<7xf32>) -> tensor<8xf32>
  %2 = stablehlo.concatenate %odd, %even, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %3 = stablehlo.concatenate %last, %middle, %first, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<6xf32>, tensor<1xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
