// RUN: shard-opt %s --sdy-op-priority-propagate | FileCheck %s
// RUN: shard-opt %s --sdy-op-priority-propagate=run-op-priority-propagation=false | FileCheck %s --check-prefix=ALL
// RUN: shard-opt %s --sdy-op-priority-propagate=lookups-first=true | FileCheck %s --check-prefix=LOOKUPS

sdy.mesh @mesh = <["x"=2]>

// The elementwise op propagates before the matmul, although it follows the matmul in the text.
// CHECK-LABEL: func.func @elementwise_first
// CHECK-NEXT: stablehlo.dot_general
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// ALL-LABEL: func.func @elementwise_first
// ALL-NEXT: stablehlo.dot_general
// ALL-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
func.func @elementwise_first(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %b: tensor<8x8xf32>,
    %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.add %0, %c : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// An op whose operand has other uses propagates after ops whose operands have none.
// CHECK-LABEL: func.func @single_uses_first
// CHECK-NEXT: stablehlo.multiply %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// ALL-LABEL: func.func @single_uses_first
// ALL-NEXT: stablehlo.multiply %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
func.func @single_uses_first(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.multiply %a, %a : tensor<8x8xf32>
  %1 = stablehlo.add %0, %b : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// A scalar with several uses does not delay an op.
// CHECK-LABEL: func.func @scalars
// CHECK: stablehlo.clamp {{.*}}{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
func.func @scalars(
    %low: tensor<f32>, %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %b: tensor<8x8xf32>,
    %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.clamp %low, %0, %low : (tensor<f32>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %1, %c : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// Backward propagation through a broadcast precedes forward propagation.
// CHECK-LABEL: func.func @broadcast_backward
// CHECK: stablehlo.broadcast_in_dim {{.*}}{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// ALL-LABEL: func.func @broadcast_backward
// ALL: stablehlo.broadcast_in_dim {{.*}}{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
func.func @broadcast_backward(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8x8xf32>,
    %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %c, %0, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = stablehlo.add %3, %c : tensor<8x8xf32>
  %5 = stablehlo.add %1, %4 : tensor<8x8xf32>
  %6 = stablehlo.add %2, %5 : tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}

// Tokens are broadcast to indices of an embedding. With lookups-first, their axis reaches the result of the gather
// before the dimension that the matmul contracts has it.
// CHECK-LABEL: func.func @to_size_1
// CHECK: stablehlo.gather
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// LOOKUPS-LABEL: func.func @to_size_1
// LOOKUPS: stablehlo.gather
// LOOKUPS-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
func.func @to_size_1(
    %tokens: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %table: tensor<32x16xf32>,
    %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.broadcast_in_dim %tokens, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
  %1 = "stablehlo.gather"(%table, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}> : (tensor<32x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// A broadcast that copies elements propagates backward first, also if another one of the same sizes, or along the same
// dimension, does not.
// LOOKUPS-LABEL: func.func @to_size_4
// LOOKUPS: stablehlo.broadcast_in_dim %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
// LOOKUPS: stablehlo.broadcast_in_dim %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
func.func @to_size_4(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %w: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x1xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
  %1 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %0, %2 : tensor<8x1xf32>, tensor<8x4xf32>
}

// With lookups-first, the axis of tokens reaches a loop over layers before the columns of weights have it.
// CHECK-LABEL: func.func @layers
// CHECK: stablehlo.dot_general
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// LOOKUPS-LABEL: func.func @layers
// LOOKUPS: stablehlo.dot_general
// LOOKUPS-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
func.func @layers(
    %tokens: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %table: tensor<32x16xf32>,
    %w: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %more: tensor<i1>) -> tensor<8x16xf32> {
  %0 = "stablehlo.gather"(%table, %tokens) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}> : (tensor<32x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>
  %1 = stablehlo.while(%h = %0) : tensor<8x16xf32> cond {
    stablehlo.return %more : tensor<i1>
  } do {
    %2 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    stablehlo.return %2 : tensor<8x16xf32>
  }
  %3 = sdy.data_flow_edge %1 : tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// The gradient of a cross-entropy scatters into values like the logits. Their columns are sharded along the axis of the
// batch, by the weight. With lookups-first, those of the scatter are, too, and nothing moves between the two.
// CHECK-LABEL: func.func @cross_entropy
// CHECK: stablehlo.dot_general
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// CHECK: "stablehlo.scatter"
// CHECK: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
// LOOKUPS-LABEL: func.func @cross_entropy
// LOOKUPS: stablehlo.dot_general
// LOOKUPS-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
// LOOKUPS: "stablehlo.scatter"
// LOOKUPS: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>}
func.func @cross_entropy(
    %h: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %w: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %tokens: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %ones: tensor<8xf32>) -> tensor<8x32xf32> {
  %zeros = stablehlo.constant dense<0.0> : tensor<8x32xf32>
  %0 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x32xf32>) -> tensor<8x32xf32>
  %1 = "stablehlo.scatter"(%zeros, %tokens, %ones) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    %3 = stablehlo.add %old, %new : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<8x32xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<8x32xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}
