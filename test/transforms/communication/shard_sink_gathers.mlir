// RUN: shard-opt %s --shard-sink-gathers --canonicalize --cse | FileCheck %s

shard.grid @grid(shape = 2x2)

// Two gathers become one of a narrower type.
// CHECK-LABEL: func.func @narrower
// CHECK: %[[CONSTANT:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<4x8xf32>
// CHECK: %[[SUM:.*]] = stablehlo.add %arg0, %arg1 : tensor<4x8xf32>
// CHECK: %[[NUMBERS:.*]] = stablehlo.iota
// CHECK: %[[ROW:.*]] = stablehlo.broadcast_in_dim %[[NUMBERS]], dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
// CHECK: %[[BIASED:.*]] = stablehlo.subtract %[[SUM]], %[[ROW]]
// CHECK: %[[TWICE:.*]] = stablehlo.multiply %[[BIASED]], %[[CONSTANT]]
// CHECK: %[[HALF:.*]] = stablehlo.convert %[[TWICE]] : (tensor<4x8xf32>) -> tensor<4x8xf16>
// CHECK: %[[ALL:.*]] = "stablehlo.all_gather"(%[[HALF]]){{.*}}: (tensor<4x8xf16>) -> tensor<8x8xf16>
// CHECK-NEXT: return %[[ALL]]
func.func @narrower(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<8x8xf16> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  %row = stablehlo.iota dim = 0 : tensor<8xf32>
  %3 = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %4 = stablehlo.subtract %2, %3 : tensor<8x8xf32>
  %two = stablehlo.constant dense<2.0> : tensor<8x8xf32>
  %5 = stablehlo.multiply %4, %two : tensor<8x8xf32>
  %6 = stablehlo.convert %5 : (tensor<8x8xf32>) -> tensor<8x8xf16>
  return %6 : tensor<8x8xf16>
}

// CHECK-LABEL: func.func @widened
// CHECK-NEXT: %[[ALL:.*]] = shard.all_gather %arg0 on @grid grid_axes = [0] gather_axis = 0 : tensor<8xbf16> -> tensor<16xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[ALL]] : tensor<16xbf16> to tensor<16xf32>
// CHECK-NEXT: return %[[WIDE]]
func.func @widened(%a: tensor<8xbf16>) -> tensor<16xf32> {
  %0 = arith.extf %a : tensor<8xbf16> to tensor<8xf32>
  %1 = shard.all_gather %0 on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// Destinations are created anew; slicing an operand that is uniform in a group needs no communication.
// CHECK-LABEL: func.func @linalg
// CHECK: %[[SUM:.*]] = shard.all_reduce %arg1
// CHECK: %[[OWN:.*]] = shard.all_slice %[[SUM]] on @grid grid_axes = [1] slice_axis = 0 : tensor<16xf32> -> tensor<8xf32>
// CHECK: %[[HALF:.*]] = linalg.generic {{.*}} ins(%arg0, %[[OWN]] : tensor<8xf32>, tensor<8xf32>) outs(%{{.*}} : tensor<8xf16>)
// CHECK: %[[ALL:.*]] = shard.all_gather %[[HALF]] on @grid grid_axes = [1] gather_axis = 0 : tensor<8xf16> -> tensor<16xf16>
// CHECK-NEXT: return %[[ALL]]
func.func @linalg(%a: tensor<8xf32>, %partial: tensor<16xf32>) -> tensor<16xf16> {
  %other = shard.all_reduce %partial on @grid grid_axes = [1] : tensor<16xf32> -> tensor<16xf32>
  %0 = shard.all_gather %a on @grid grid_axes = [1] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %empty = tensor.empty() : tensor<16xf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%0, %other : tensor<16xf32>, tensor<16xf32>) outs(%empty : tensor<16xf16>) {
    ^bb0(%x: f32, %y: f32, %unused: f16):
      %sum = arith.addf %x, %y : f32
      %half = arith.truncf %sum : f32 to f16
      linalg.yield %half : f16
    } -> tensor<16xf16>
  return %1 : tensor<16xf16>
}

// Unchanged: a wider result, other devices, another use, and another operand that is replicated.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: shard.all_gather %arg
// CHECK-NOT: shard.all_gather
func.func @others(%a: tensor<8xbf16>, %b: tensor<8xf32>, %c: tensor<8xf32>, %whole: tensor<16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<8xbf16> -> tensor<16xbf16>
  %1 = arith.extf %0 : tensor<16xbf16> to tensor<16xf32>
  %2 = shard.all_gather %b on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %3 = arith.negf %2 : tensor<16xf32>
  %4 = shard.all_gather %b on @grid grid_axes = [1] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %5 = arith.addf %4, %2 : tensor<16xf32>
  %6 = shard.all_gather %c on @grid grid_axes = [1] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %7 = arith.addf %6, %whole : tensor<16xf32>
  return %1, %3, %5, %7 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// The subtracted value diverges across devices, so a shard of it would be another value.
// CHECK-LABEL: func.func @own_offset
// CHECK: %[[ALL:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK: stablehlo.subtract %[[ALL]]
// CHECK: %[[ALL:.*]] = shard.all_gather %arg1
// CHECK: arith.truncf %{{.*}} : tensor<16xf32> to tensor<16xf16>
func.func @own_offset(%a: tensor<4xui32>, %b: tensor<8xf32>, %own: tensor<16xf32>) -> (tensor<8xui32>, tensor<16xf16>) {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<4xui32>) -> tensor<8xui32>
  %device = stablehlo.partition_id : tensor<ui32>
  %1 = stablehlo.broadcast_in_dim %device, dims = [] : (tensor<ui32>) -> tensor<8xui32>
  %2 = stablehlo.subtract %0, %1 : tensor<8xui32>
  %3 = shard.all_gather %b on @grid grid_axes = [1] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %4 = arith.addf %3, %own : tensor<16xf32>
  %5 = arith.truncf %4 : tensor<16xf32> to tensor<16xf16>
  return %2, %5 : tensor<8xui32>, tensor<16xf16>
}

shard.grid @pairs(shape = 2x2)

// The operand of the second gather, along the other axis, changes before that gather is erased.
// CHECK-LABEL: func.func @changed_before_it_is_gone
// CHECK-NEXT: %[[NEGATED:.*]] = arith.negf %arg0 : tensor<2x2xf32>
// CHECK-NEXT: %[[COLUMN:.*]] = shard.all_gather %[[NEGATED]] on @pairs grid_axes = [0] gather_axis = 0
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %arg1, %[[COLUMN]] : tensor<4x2xf32>
// CHECK-NEXT: %[[ALL:.*]] = shard.all_gather %[[SUM]] on @pairs grid_axes = [1] gather_axis = 1
// CHECK-NEXT: return %[[ALL]]
func.func @changed_before_it_is_gone(%x: tensor<2x2xf32>, %y: tensor<4x2xf32>) -> tensor<4x4xf32> {
  %0 = shard.all_gather %x on @pairs grid_axes = [0] gather_axis = 0 : tensor<2x2xf32> -> tensor<4x2xf32>
  %1 = arith.negf %0 : tensor<4x2xf32>
  %2 = shard.all_gather %y on @pairs grid_axes = [1] gather_axis = 1 : tensor<4x2xf32> -> tensor<4x4xf32>
  %3 = shard.all_gather %1 on @pairs grid_axes = [1] gather_axis = 1 : tensor<4x2xf32> -> tensor<4x4xf32>
  %4 = arith.addf %2, %3 : tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}
