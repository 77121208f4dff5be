// RUN: shard-opt %s --canonicalize | FileCheck %s
// RUN: shard-opt %s --canonicalize='enable-patterns=reshard-of-reshard,reshard-repeated' | FileCheck %s --check-prefix=EXACT

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func @chain
func.func @chain(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}, {"x"}]> {note} : tensor<8x8xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = sdy.reshard %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"y"}, {"x"}]> {note} : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// The intermediate value has another use, so its reshard stays.
// CHECK-LABEL: func @chain_with_other_use
func.func @chain_with_other_use(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}]>
  // CHECK-NEXT: %[[S:.*]] = sdy.reshard %[[R]] <@mesh, [{"y"}]>
  // CHECK-NEXT: return %[[R]], %[[S]]
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func @repeated
// EXACT-LABEL: func @repeated
// EXACT-COUNT-2: sdy.reshard
// EXACT-NEXT: return
func.func @repeated(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{"x", ?}]>
  // CHECK-NEXT: %[[S:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}]>
  // CHECK-NEXT: return %[[R]], %[[S]], %[[R]]
  %0 = sdy.reshard %a <@mesh, [{"x", ?}]> : tensor<8xf32>
  %1 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  %2 = sdy.reshard %a <@mesh, [{"x", ?}]> : tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Reshards with different unreduced axes are different.
// CHECK-LABEL: func @unreduced_differ
func.func @unreduced_differ(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<4x2xf32>) {
  // CHECK: sdy.reshard %arg0 <@mesh, [{}], unreduced={"x"}>
  // CHECK: sdy.reshard %{{.*}} <@mesh, [{}, {}]>
  %0 = sdy.reshard %a <@mesh, [{}], unreduced={"x"}> : tensor<8xf32>
  %1 = stablehlo.reshape %a : (tensor<8xf32>) -> tensor<4x2xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<4x2xf32>
  return %0, %2 : tensor<8xf32>, tensor<4x2xf32>
}

// Both shardings give device y the elements from 8 * y on, in row-major order.
// The new reshapes have no sharding; passes that need one run without this pattern.
// CHECK-LABEL: func @behind_reshape
// EXACT-LABEL: func @behind_reshape
// EXACT-COUNT-2: sdy.reshard
func.func @behind_reshape(%a: tensor<4x8xf32>) -> (tensor<32xf32>, tensor<2x2x8xf32>) {
  // CHECK-NEXT: %[[F:.*]] = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<32xf32>
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %[[F]] <@mesh, [{"y"}]>
  // CHECK-NEXT: %[[B:.*]] = stablehlo.reshape %[[R]] : (tensor<32xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: %[[S:.*]] = stablehlo.reshape %[[B]] : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  // CHECK-NEXT: return %[[R]], %[[S]]
  %0 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<32xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<32xf32>
  %2 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  %3 = sdy.reshard %2 <@mesh, [{"y":(1)2}, {"y":(2)2}, {}]> : tensor<2x2x8xf32>
  return %1, %3 : tensor<32xf32>, tensor<2x2x8xf32>
}

// The axes are the same, but in the opposite order.
// CHECK-LABEL: func @behind_reshape_elsewhere
func.func @behind_reshape_elsewhere(%a: tensor<4x8xf32>) -> (tensor<32xf32>, tensor<2x2x8xf32>) {
  // CHECK: sdy.reshard %{{.*}} <@mesh, [{"y"}]>
  // CHECK: sdy.reshard %{{.*}} <@mesh, [{"y":(2)2}, {"y":(1)2}, {}]>
  %0 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<32xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<32xf32>
  %2 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  %3 = sdy.reshard %2 <@mesh, [{"y":(2)2}, {"y":(1)2}, {}]> : tensor<2x2x8xf32>
  return %1, %3 : tensor<32xf32>, tensor<2x2x8xf32>
}

// Shards of 2, 2, 2 and 1 elements do not have the same positions in another shape.
// CHECK-LABEL: func @uneven
func.func @uneven(%a: tensor<7xf32>) -> (tensor<7xf32>, tensor<7x1xf32>) {
  // CHECK: sdy.reshard %{{.*}} <@mesh, [{"y"}]>
  // CHECK: sdy.reshard %{{.*}} <@mesh, [{"y"}, {}]>
  %0 = sdy.reshard %a <@mesh, [{"y"}]> : tensor<7xf32>
  %1 = stablehlo.reshape %a : (tensor<7xf32>) -> tensor<7x1xf32>
  %2 = sdy.reshard %1 <@mesh, [{"y"}, {}]> : tensor<7x1xf32>
  return %0, %2 : tensor<7xf32>, tensor<7x1xf32>
}

// CHECK-LABEL: func @behind_transpose
func.func @behind_transpose(%a: tensor<8x4x2xf32>) -> (tensor<8x4x2xf32>, tensor<2x8x4xf32>) {
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}, {"x"}, {}]>
  // CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %[[R]], dims = [2, 0, 1] : (tensor<8x4x2xf32>) -> tensor<2x8x4xf32>
  // CHECK-NEXT: return %[[R]], %[[T]]
  %0 = sdy.reshard %a <@mesh, [{"y"}, {"x"}, {}]> : tensor<8x4x2xf32>
  %1 = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<8x4x2xf32>) -> tensor<2x8x4xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {"y"}, {"x"}]> : tensor<2x8x4xf32>
  return %0, %2 : tensor<8x4x2xf32>, tensor<2x8x4xf32>
}

// The reshape that merges dimensions follows the transpose, so y shards another one of the merged dimensions.
// CHECK-LABEL: func @transpose_before_reshape
func.func @transpose_before_reshape(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>) {
  // CHECK: sdy.reshard %arg0 <@mesh, [{"y"}, {}]>
  // CHECK: sdy.reshard %{{.*}} <@mesh, [{"y"}]> : tensor<32xf32>
  %0 = sdy.reshard %a <@mesh, [{"y"}, {}]> : tensor<4x8xf32>
  %1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.reshape %1 : (tensor<8x4xf32>) -> tensor<32xf32>
  %3 = sdy.reshard %2 <@mesh, [{"y"}]> : tensor<32xf32>
  return %0, %3 : tensor<4x8xf32>, tensor<32xf32>
}

// Here y shards the matching dimension.
// CHECK-LABEL: func @transpose_before_matching_reshape
func.func @transpose_before_matching_reshape(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>) {
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"y"}]>
  // CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %[[R]], dims = [1, 0]
  // CHECK-NEXT: %[[F:.*]] = stablehlo.reshape %[[T]] : (tensor<8x4xf32>) -> tensor<32xf32>
  // CHECK-NEXT: return %[[R]], %[[F]]
  %0 = sdy.reshard %a <@mesh, [{}, {"y"}]> : tensor<4x8xf32>
  %1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.reshape %1 : (tensor<8x4xf32>) -> tensor<32xf32>
  %3 = sdy.reshard %2 <@mesh, [{"y"}]> : tensor<32xf32>
  return %0, %3 : tensor<4x8xf32>, tensor<32xf32>
}

// CHECK-LABEL: func @in_another_block
func.func @in_another_block(%a: tensor<8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: sdy.reshard %arg0 <@mesh, [{"x"}]>
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  %1 = "stablehlo.case"(%i) ({
    // CHECK: sdy.reshard %arg0 <@mesh, [{"x"}]>
    %2 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
    %3 = stablehlo.negate %2 : tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }, {
    stablehlo.return %a : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

sdy.mesh @third = <[], device_ids=[2]>

// Reshards to and from one device go through the replicated tensor.
// CHECK-LABEL: func @one_device
func.func @one_device(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[ALL:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
  // CHECK-NEXT: %[[ONE:.*]] = sdy.reshard %[[ALL]] <@third, []>
  // CHECK-NEXT: %[[BACK:.*]] = sdy.reshard %[[ONE]] <@mesh, [{}]>
  %0 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@third, []> : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2, %a : tensor<8xf32>, tensor<8xf32>
}

// A reshard after a transpose reverts the reshard before it.

// CHECK-LABEL: func @back_of_transpose
func.func @back_of_transpose(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %arg0, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
  // CHECK-NEXT: return %[[T]]
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {"y"}]> : tensor<16x8xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {"x"}]> : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// CHECK-LABEL: func @back_of_linalg_transpose
func.func @back_of_linalg_transpose(%arg0: tensor<16x8xf32>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[E:.*]] = tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
  // CHECK-NEXT: linalg.transpose ins(%arg0 : tensor<16x8xf32>) outs(%[[E]] : tensor<8x16xf32>) permutation = [1, 0]
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<16x8xf32>
  %e = tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x16xf32>
  %1 = linalg.transpose ins(%0 : tensor<16x8xf32>) outs(%e : tensor<8x16xf32>) permutation = [1, 0]
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// CHECK-LABEL: func @elsewhere_behind_transpose
func.func @elsewhere_behind_transpose(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  // CHECK-COUNT-2: sdy.reshard
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {"y"}]> : tensor<16x8xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %2 = sdy.reshard %1 <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
