// RUN: shard-opt %s --pass-pipeline='builtin.module(shard-collective-matmul{always=true})' | FileCheck %s
// RUN: shard-opt %s --shard-collective-matmul | FileCheck %s --check-prefix=COST

shard.grid @grid(shape = 3x2)

// Each received block gives one block of rows of the result.
// CHECK-LABEL: func.func @gathered_rows
// CHECK-SAME: (%[[OWN:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x5xf32>)
// CHECK: %[[PLACE:.*]] = shard.process_multi_index on @grid axes = [0]
// CHECK: %[[FIRST:.*]] = shard.shift %[[OWN]] on @grid grid_axes = [0] shift_axis = 0 offset = 1 rotate
// CHECK: %[[BLOCK:.*]] = stablehlo.dot_general %[[OWN]], %[[B]], {{.*}} -> tensor<4x5xf32>
// CHECK: tensor.insert_slice %[[BLOCK]] into
// CHECK: %[[SECOND:.*]] = shard.shift %[[FIRST]]
// CHECK: %[[BEFORE:.*]] = arith.remui
// CHECK: %[[OTHER:.*]] = stablehlo.dot_general %[[FIRST]], %[[B]]
// CHECK: %[[ROW:.*]] = arith.muli %[[BEFORE]]
// CHECK: tensor.insert_slice %[[OTHER]] into {{.*}}[%[[ROW]], 0] [4, 5] [1, 1]
// CHECK-NOT: shard.shift
// CHECK: %[[LAST:.*]] = stablehlo.dot_general %[[SECOND]], %[[B]]
// CHECK-NOT: shard.
// CHECK: return
// COST-LABEL: func.func @gathered_rows
// COST: shard.all_gather
func.func @gathered_rows(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>) -> tensor<12x5xf32> {
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<4x8xf32> -> tensor<12x8xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<12x8xf32>, tensor<8x5xf32>) -> tensor<12x5xf32>
  return %1 : tensor<12x5xf32>
}

// The other operand is sliced, and each product is added to those of earlier blocks.
// CHECK-LABEL: func.func @gathered_and_contracted
// CHECK: shard.shift %arg0 on @grid grid_axes = [1] shift_axis = 1 offset = 1 rotate
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %arg1[%{{.*}}, 0] [4, 5] [1, 1]
// CHECK: %[[SUM:.*]] = linalg.matmul ins(%arg0, %[[SLICE]] : tensor<6x4xf32>, tensor<4x5xf32>) outs(%arg2 : tensor<6x5xf32>)
// CHECK: linalg.matmul ins({{.*}}) outs(%[[SUM]] : tensor<6x5xf32>)
// CHECK-NOT: shard.
func.func @gathered_and_contracted(%a: tensor<6x4xf32>, %b: tensor<8x5xf32>, %c: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %0 = shard.all_gather %a on @grid grid_axes = [1] gather_axis = 1 : tensor<6x4xf32> -> tensor<6x8xf32>
  %1 = linalg.matmul ins(%0, %b : tensor<6x8xf32>, tensor<8x5xf32>) outs(%c : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %1 : tensor<6x5xf32>
}

// Partial sums are passed from device to device, and the last device keeps them.
// CHECK-LABEL: func.func @scattered
// CHECK: tensor.extract_slice %arg0[%{{.*}}, 0] [2, 8] [1, 1]
// CHECK: %[[PART:.*]] = stablehlo.dot_general
// CHECK: %[[COMING:.*]] = shard.shift %[[PART]]
// CHECK: %[[NEXT:.*]] = stablehlo.dot_general
// CHECK: %[[SUM:.*]] = arith.addf %[[COMING]], %[[NEXT]] : tensor<2x5xf32>
// CHECK: shard.shift %[[SUM]]
// CHECK: %[[LAST:.*]] = arith.addf
// CHECK-NEXT: return %[[LAST]]
func.func @scattered(%a: tensor<6x8xf32>, %b: tensor<8x5xf32>) -> tensor<2x5xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %1 = shard.reduce_scatter %0 on @grid grid_axes = [0] scatter_dim = 0 : tensor<6x5xf32> -> tensor<2x5xf32>
  return %1 : tensor<2x5xf32>
}

// Unchanged: a tensor with another use, a maximum, sums of bf16, groups along two axes, and an op without blocks.
// CHECK-LABEL: func.func @others
// CHECK-NOT: shard.shift
func.func @others(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<8x6xbf16>, %d: tensor<6x8xbf16>)
    -> (tensor<12x6xf32>, tensor<12x8xf32>, tensor<2x6xf32>, tensor<2x6xbf16>, tensor<24x6xf32>, tensor<12x8xf32>) {
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<4x8xf32> -> tensor<12x8xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<12x8xf32>, tensor<8x6xf32>) -> tensor<12x6xf32>
  %2 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %3 = shard.reduce_scatter %2 on @grid grid_axes = [1] reduction = max scatter_dim = 0 : tensor<4x6xf32> -> tensor<2x6xf32>
  %4 = stablehlo.dot_general %d, %c, contracting_dims = [1] x [0] : (tensor<6x8xbf16>, tensor<8x6xbf16>) -> tensor<6x6xbf16>
  %5 = shard.reduce_scatter %4 on @grid grid_axes = [0] scatter_dim = 0 : tensor<6x6xbf16> -> tensor<2x6xbf16>
  %6 = shard.all_gather %a on @grid grid_axes = [0, 1] gather_axis = 0 : tensor<4x8xf32> -> tensor<24x8xf32>
  %7 = stablehlo.dot_general %6, %b, contracting_dims = [1] x [0] : (tensor<24x8xf32>, tensor<8x6xf32>) -> tensor<24x6xf32>
  %8 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<4x8xf32> -> tensor<12x8xf32>
  %9 = stablehlo.tanh %8 : tensor<12x8xf32>
  return %1, %0, %3, %5, %7, %9 : tensor<12x6xf32>, tensor<12x8xf32>, tensor<2x6xf32>, tensor<2x6xbf16>, tensor<24x6xf32>, tensor<12x8xf32>
}

// Unchanged: a sum of i1 is a disjunction in StableHLO.
// CHECK-LABEL: func.func @booleans
// CHECK-NOT: shard.shift
func.func @booleans(%a: tensor<4x3xi1>, %b: tensor<9x6xi1>) -> tensor<4x6xi1> {
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 1 : tensor<4x3xi1> -> tensor<4x9xi1>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<4x9xi1>, tensor<9x6xi1>) -> tensor<4x6xi1>
  return %1 : tensor<4x6xi1>
}

// Messages have megabytes, and the computation takes about as long.
// CHECK-LABEL: func.func @large
// COST-LABEL: func.func @large
// COST-COUNT-2: shard.shift
// COST-NOT: shard.all_gather
func.func @large(%a: tensor<1024x4096xf32>, %b: tensor<4096x4096xf32>) -> tensor<3072x4096xf32> {
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<1024x4096xf32> -> tensor<3072x4096xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<3072x4096xf32>, tensor<4096x4096xf32>) -> tensor<3072x4096xf32>
  return %1 : tensor<3072x4096xf32>
}
