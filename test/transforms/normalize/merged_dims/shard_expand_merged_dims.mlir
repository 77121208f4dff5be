// RUN: shard-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(shard-expand-merged-dims))' | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-propagate | FileCheck %s --check-prefix=PROPAGATED

sdy.mesh @mesh = <["data"=2, "model"=2]>

// A batch matmul of torch, whose batch dimension merges the batch with the heads.
// CHECK-LABEL: @attention
// CHECK-NEXT: %[[Q:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 1, 3] : (tensor<4x8x6x3xf32>) -> tensor<4x6x8x3xf32>
// CHECK-NEXT: %[[P:.*]] = stablehlo.dot_general %[[Q]], %[[Q]], batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
// CHECK-SAME: (tensor<4x6x8x3xf32>, tensor<4x6x8x3xf32>) -> tensor<4x6x8x8xf32>
// CHECK-NEXT: return %[[P]]
// PROPAGATED-LABEL: @attention
// PROPAGATED: stablehlo.dot_general {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>}
func.func @attention(%x: tensor<4x8x6x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {"model"}, {}]>}) -> tensor<4x6x8x8xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<4x8x6x3xf32>) -> tensor<4x6x8x3xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x6x8x3xf32>) -> tensor<24x8x3xf32>
  %2 = stablehlo.dot_general %1, %1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<24x8x3xf32>, tensor<24x8x3xf32>) -> tensor<24x8x8xf32>
  %3 = stablehlo.reshape %2 : (tensor<24x8x8xf32>) -> tensor<4x6x8x8xf32>
  return %3 : tensor<4x6x8x8xf32>
}

// -----

// A linear layer on tokens whose second dimension is the batch, and its gradient, which sums over all tokens.
// CHECK-LABEL: @linear
// CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[DOT:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0] : (tensor<6x8x4xf32>, tensor<4x5xf32>) -> tensor<6x8x5xf32>
// CHECK-NEXT: %[[BIAS:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<5xf32>) -> tensor<6x8x5xf32>
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[DOT]], %[[BIAS]] : tensor<6x8x5xf32>
// CHECK-NEXT: %[[GRADIENT:.*]] = stablehlo.dot_general %arg0, %[[SUM]], contracting_dims = [0, 1] x [0, 1]
// CHECK-NEXT: %[[OF_BIAS:.*]] = stablehlo.reduce(%[[SUM]] init: %[[ZERO]]) applies stablehlo.add across dimensions = [0, 1]
// CHECK-NEXT: return %[[SUM]], %[[GRADIENT]], %[[OF_BIAS]]
func.func @linear(%x: tensor<6x8x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>) -> (tensor<6x8x5xf32>, tensor<4x5xf32>, tensor<5xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %x : (tensor<6x8x4xf32>) -> tensor<48x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<48x4xf32>, tensor<4x5xf32>) -> tensor<48x5xf32>
  %2 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> tensor<48x5xf32>
  %3 = stablehlo.add %1, %2 : tensor<48x5xf32>
  %4 = stablehlo.reshape %3 : (tensor<48x5xf32>) -> tensor<6x8x5xf32>
  %5 = stablehlo.dot_general %0, %3, contracting_dims = [0] x [0] : (tensor<48x4xf32>, tensor<48x5xf32>) -> tensor<4x5xf32>
  %6 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<48x5xf32>, tensor<f32>) -> tensor<5xf32>
  return %4, %5, %6 : tensor<6x8x5xf32>, tensor<4x5xf32>, tensor<5xf32>
}

// -----

// A reshape that splits one dimension and merges the parts with another becomes a split only.
// CHECK-LABEL: @split_and_merged
// CHECK-NEXT: %[[SPLIT:.*]] = stablehlo.reshape %arg0 : (tensor<3x8x12xf32>) -> tensor<3x8x2x6xf32>
// CHECK-NEXT: %[[NEGATED:.*]] = stablehlo.negate %[[SPLIT]] : tensor<3x8x2x6xf32>
// CHECK-NEXT: return %[[NEGATED]]
func.func @split_and_merged(%x: tensor<3x8x12xf32>) -> tensor<3x8x2x6xf32> {
  %0 = stablehlo.reshape %x : (tensor<3x8x12xf32>) -> tensor<3x16x6xf32>
  %1 = stablehlo.negate %0 : tensor<3x16x6xf32>
  %2 = stablehlo.reshape %1 : (tensor<3x16x6xf32>) -> tensor<3x8x2x6xf32>
  return %2 : tensor<3x8x2x6xf32>
}

// -----

// Constants and iotas are created expanded, and the other operand of a sum is split; the sort keeps one merge.
// CHECK-LABEL: @others
// CHECK-DAG: %[[ONE:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<2x3x4xf32>
// CHECK-DAG: %[[IOTA:.*]] = stablehlo.iota dim = 2 : tensor<2x3x4xf32>
// CHECK-DAG: %[[OTHER:.*]] = stablehlo.reshape %arg1 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
// CHECK: %[[A:.*]] = stablehlo.add %arg0, %[[ONE]]
// CHECK: %[[B:.*]] = stablehlo.multiply %[[A]], %[[IOTA]]
// CHECK: %[[C:.*]] = stablehlo.add %[[B]], %[[OTHER]]
// CHECK: %[[MERGED:.*]] = stablehlo.reshape %[[C]] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// CHECK: stablehlo.sort"(%[[MERGED]])
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @others(%x: tensor<2x3x4xf32>, %y: tensor<6x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<6x4xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<6x4xf32>
  %iota = stablehlo.iota dim = 1 : tensor<6x4xf32>
  %0 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = stablehlo.add %0, %one : tensor<6x4xf32>
  %2 = stablehlo.multiply %1, %iota : tensor<6x4xf32>
  %3 = stablehlo.add %2, %y : tensor<6x4xf32>
  %4 = "stablehlo.sort"(%3) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %8 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %8 : tensor<i1>
  }) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %5 = stablehlo.reshape %1 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %6 = stablehlo.reshape %2 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %7 = stablehlo.reshape %3 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  return %5, %6, %7, %4 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<6x4xf32>
}

// -----

// The expansion would leave as many reshapes as before.
// CHECK-LABEL: @not_split
// CHECK: stablehlo.reshape %arg0
// CHECK-NEXT: stablehlo.negate {{.*}} : tensor<6xf32>
func.func @not_split(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = stablehlo.negate %0 : tensor<6xf32>
  return %1 : tensor<6xf32>
}

// -----

// Operands of one op merge different dimensions.
// CHECK-LABEL: @conflict
// CHECK: stablehlo.add {{.*}} : tensor<6xf32>
func.func @conflict(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = stablehlo.reshape %y : (tensor<3x2xf32>) -> tensor<6xf32>
  %2 = stablehlo.add %0, %1 : tensor<6xf32>
  %3 = stablehlo.reshape %2 : (tensor<6xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// A sharding of the merged dimension stays.
// CHECK-LABEL: @fixed
// CHECK: stablehlo.negate {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<6xf32>
func.func @fixed(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<6xf32>
  %2 = stablehlo.reshape %1 : (tensor<6xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// -----

// A merged dimension in the body of a loop, in a value that the loop carries.
// CHECK-LABEL: @loop
// CHECK: stablehlo.while
// CHECK: do {
// CHECK-NEXT: stablehlo.negate %{{.*}} : tensor<2x3xf32>
// CHECK-NEXT: stablehlo.return
func.func @loop(%x: tensor<2x3xf32>, %n: tensor<i1>) -> tensor<2x3xf32> {
  %0:2 = stablehlo.while(%i = %n, %c = %x) : tensor<i1>, tensor<2x3xf32>
  cond {
    stablehlo.return %i : tensor<i1>
  } do {
    %1 = stablehlo.reshape %c : (tensor<2x3xf32>) -> tensor<6xf32>
    %2 = stablehlo.negate %1 : tensor<6xf32>
    %3 = stablehlo.reshape %2 : (tensor<6xf32>) -> tensor<2x3xf32>
    stablehlo.return %i, %3 : tensor<i1>, tensor<2x3xf32>
  }
  return %0#1 : tensor<2x3xf32>
}

// -----

// In linalg, a matmul with more dimensions becomes a generic op; fills and empty tensors are created anew.
// CHECK: #[[LEFT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK: #[[RIGHT:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: @linear_in_linalg
// CHECK: %[[ZERO:.*]] = arith.constant
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<6x8x5xf32>
// CHECK: %[[FILLED:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] : tensor<6x8x5xf32>)
// CHECK: %[[DOT:.*]] = linalg.generic {indexing_maps = [#[[LEFT]], #[[RIGHT]], #[[OUT]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%arg0, %arg1 : tensor<6x8x4xf32>, tensor<4x5xf32>) outs(%[[FILLED]] : tensor<6x8x5xf32>)
// CHECK: %[[EXP:.*]] = math.exp %[[DOT]] : tensor<6x8x5xf32>
// CHECK: return %[[EXP]]
func.func @linear_in_linalg(%x: tensor<6x8x4xf32>, %w: tensor<4x5xf32>) -> tensor<6x8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<6x8x4xf32> into tensor<48x4xf32>
  %1 = tensor.empty() : tensor<48x5xf32>
  %2 = linalg.fill ins(%zero : f32) outs(%1 : tensor<48x5xf32>) -> tensor<48x5xf32>
  %3 = linalg.matmul ins(%0, %w : tensor<48x4xf32>, tensor<4x5xf32>) outs(%2 : tensor<48x5xf32>) -> tensor<48x5xf32>
  %4 = math.exp %3 : tensor<48x5xf32>
  %5 = tensor.expand_shape %4 [[0, 1], [2]] output_shape [6, 8, 5] : tensor<48x5xf32> into tensor<6x8x5xf32>
  return %5 : tensor<6x8x5xf32>
}

// -----

// A loop whose index the body reads, or that windows read, is not expanded; the other one is.
// CHECK-LABEL: @indexed
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<6xi64>)
// CHECK-LABEL: @transposed
// CHECK: linalg.transpose ins(%arg0 : tensor<2x3x4xf32>) outs({{.*}} : tensor<4x2x3xf32>) permutation = [2, 0, 1]
func.func @indexed(%x: tensor<2x3xi64>) -> tensor<2x3xi64> {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xi64> into tensor<6xi64>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%0 : tensor<6xi64>) {
  ^bb0(%out: i64):
    %3 = linalg.index 0 : index
    %4 = arith.index_cast %3 : index to i64
    linalg.yield %4 : i64
  } -> tensor<6xi64>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [2, 3] : tensor<6xi64> into tensor<2x3xi64>
  return %2 : tensor<2x3xi64>
}
func.func @transposed(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %1 = tensor.empty() : tensor<4x6xf32>
  %2 = linalg.transpose ins(%0 : tensor<6x4xf32>) outs(%1 : tensor<4x6xf32>) permutation = [1, 0]
  %3 = tensor.expand_shape %2 [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf32> into tensor<4x2x3xf32>
  return %3 : tensor<4x2x3xf32>
}

// -----

// Heads are split off the last dimension and merged again between the merge of the windows and their split, which then
// remains only for the heads. A maximum is repeated along the dimension that it was taken over.
// CHECK-LABEL: @windows
// CHECK-NEXT: %[[INIT:.*]] = stablehlo.constant
// CHECK-NEXT: %[[HEADS:.*]] = stablehlo.reshape %arg0 : (tensor<2x3x4x6xf32>) -> tensor<2x3x4x2x3xf32>
// CHECK-NEXT: %[[SCORES:.*]] = stablehlo.dot_general %[[HEADS]], %[[HEADS]], batching_dims = [0, 1, 3] x [0, 1, 3]
// CHECK-NEXT: %[[MAX:.*]] = stablehlo.reduce(%[[SCORES]] init: %[[INIT]]) {{.*}} dimensions = [4]
// CHECK-NEXT: %[[REPEATED:.*]] = stablehlo.broadcast_in_dim %[[MAX]], dims = [0, 1, 2, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x4x4xf32>
// CHECK-NEXT: stablehlo.subtract %[[SCORES]], %[[REPEATED]]
// CHECK: %[[MIXED:.*]] = stablehlo.transpose {{.*}} -> tensor<2x3x4x2x3xf32>
// CHECK-NEXT: %[[MERGED:.*]] = stablehlo.reshape %[[MIXED]] : (tensor<2x3x4x2x3xf32>) -> tensor<2x3x4x6xf32>
// CHECK-NEXT: return %[[MERGED]]
func.func @windows(%x: tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32> {
  %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reshape %x : (tensor<2x3x4x6xf32>) -> tensor<6x4x6xf32>
  %1 = stablehlo.reshape %0 : (tensor<6x4x6xf32>) -> tensor<6x4x2x3xf32>
  %2 = stablehlo.dot_general %1, %1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<6x4x2x3xf32>, tensor<6x4x2x3xf32>) -> tensor<6x2x4x4xf32>
  %3 = stablehlo.reduce(%2 init: %init) applies stablehlo.maximum across dimensions = [3] : (tensor<6x2x4x4xf32>, tensor<f32>) -> tensor<6x2x4xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<6x2x4xf32>) -> tensor<6x2x4x4xf32>
  %5 = stablehlo.subtract %2, %4 : tensor<6x2x4x4xf32>
  %6 = stablehlo.dot_general %5, %1, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<6x2x4x4xf32>, tensor<6x4x2x3xf32>) -> tensor<6x2x4x3xf32>
  %7 = stablehlo.transpose %6, dims = [0, 2, 1, 3] : (tensor<6x2x4x3xf32>) -> tensor<6x4x2x3xf32>
  %8 = stablehlo.reshape %7 : (tensor<6x4x2x3xf32>) -> tensor<6x4x6xf32>
  %9 = stablehlo.reshape %8 : (tensor<6x4x6xf32>) -> tensor<2x3x4x6xf32>
  return %9 : tensor<2x3x4x6xf32>
}

// -----

// A dimension of three merged ones is split into two for a mask, and merged again. A repeated bias is built from the
// argument, and the mask is split.
// CHECK-LABEL: @masked
// CHECK-DAG: %[[BIAS:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [3] : (tensor<5xf32>) -> tensor<2x3x4x5xf32>
// CHECK-DAG: %[[A:.*]] = stablehlo.add %arg0, %[[BIAS]] : tensor<2x3x4x5xf32>
// CHECK-DAG: %[[MASK:.*]] = stablehlo.reshape %arg2 : (tensor<1x12x5xf32>) -> tensor<1x3x4x5xf32>
// CHECK: %[[REPEATED:.*]] = stablehlo.broadcast_in_dim %[[MASK]], dims = [0, 1, 2, 3] : (tensor<1x3x4x5xf32>) -> tensor<2x3x4x5xf32>
// CHECK: %[[B:.*]] = stablehlo.add %[[A]], %[[REPEATED]] : tensor<2x3x4x5xf32>
// CHECK: %[[C:.*]] = stablehlo.abs %[[B]] : tensor<2x3x4x5xf32>
// CHECK: return %[[C]]
func.func @masked(%x: tensor<2x3x4x5xf32>, %bias: tensor<5xf32>, %mask: tensor<1x12x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3x4x5xf32>) -> tensor<24x5xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<5xf32>) -> tensor<24x5xf32>
  %2 = stablehlo.add %0, %1 : tensor<24x5xf32>
  %3 = stablehlo.reshape %2 : (tensor<24x5xf32>) -> tensor<2x12x5xf32>
  %4 = stablehlo.broadcast_in_dim %mask, dims = [0, 1, 2] : (tensor<1x12x5xf32>) -> tensor<2x12x5xf32>
  %5 = stablehlo.add %3, %4 : tensor<2x12x5xf32>
  %6 = stablehlo.reshape %5 : (tensor<2x12x5xf32>) -> tensor<24x5xf32>
  %7 = stablehlo.abs %6 : tensor<24x5xf32>
  %8 = stablehlo.reshape %7 : (tensor<24x5xf32>) -> tensor<2x3x4x5xf32>
  return %8 : tensor<2x3x4x5xf32>
}

// -----

// Each dimension is expanded on its own: the second one would need a split of the weight.
// CHECK-LABEL: @one_of_two
// CHECK-NEXT: %[[MERGED:.*]] = stablehlo.reshape %arg0 : (tensor<2x3x4x5xf32>) -> tensor<2x3x20xf32>
// CHECK-NEXT: %[[DOT:.*]] = stablehlo.dot_general %[[MERGED]], %arg1, contracting_dims = [2] x [0]
// CHECK-NEXT: return %[[DOT]] : tensor<2x3x7xf32>
func.func @one_of_two(%x: tensor<2x3x4x5xf32>, %w: tensor<20x7xf32>) -> tensor<2x3x7xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3x4x5xf32>) -> tensor<6x20xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<6x20xf32>, tensor<20x7xf32>) -> tensor<6x7xf32>
  %2 = stablehlo.reshape %1 : (tensor<6x7xf32>) -> tensor<2x3x7xf32>
  return %2 : tensor<2x3x7xf32>
}

// -----

// Slices, pads, concatenations and barriers along other dimensions.
// CHECK-LABEL: @other_dims
// CHECK: %[[SLICE:.*]] = stablehlo.slice %arg0 [0:2, 0:3, 1:5:2] : (tensor<2x3x8xf32>) -> tensor<2x3x2xf32>
// CHECK: %[[PAD:.*]] = stablehlo.pad %[[SLICE]], %{{.*}}, low = [0, 0, 1], high = [0, 0, 2], interior = [0, 0, 1] : (tensor<2x3x2xf32>, tensor<f32>) -> tensor<2x3x6xf32>
// CHECK: %[[BOTH:.*]]:2 = stablehlo.optimization_barrier %[[PAD]], %[[SLICE]] : tensor<2x3x6xf32>, tensor<2x3x2xf32>
// CHECK: %[[JOINED:.*]] = stablehlo.concatenate %[[BOTH]]#0, %[[BOTH]]#1, dim = 2 : (tensor<2x3x6xf32>, tensor<2x3x2xf32>) -> tensor<2x3x8xf32>
// CHECK: return %[[JOINED]]
func.func @other_dims(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %x : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %1 = stablehlo.slice %0 [0:6, 1:5:2] : (tensor<6x8xf32>) -> tensor<6x2xf32>
  %2 = stablehlo.pad %1, %zero, low = [0, 1], high = [0, 2], interior = [0, 1] : (tensor<6x2xf32>, tensor<f32>) -> tensor<6x6xf32>
  %3:2 = stablehlo.optimization_barrier %2, %1 : tensor<6x6xf32>, tensor<6x2xf32>
  %4 = stablehlo.concatenate %3#0, %3#1, dim = 1 : (tensor<6x6xf32>, tensor<6x2xf32>) -> tensor<6x8xf32>
  %5 = stablehlo.reshape %4 : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  return %5 : tensor<2x3x8xf32>
}

// -----

// A slice along the merged dimension is computed on it.
// CHECK-LABEL: @sliced
// CHECK: stablehlo.slice {{.*}} : (tensor<6x4xf32>) -> tensor<4x4xf32>
func.func @sliced(%x: tensor<2x3x4xf32>) -> tensor<2x2x4xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = stablehlo.slice %0 [1:5, 0:4] : (tensor<6x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.reshape %1 : (tensor<4x4xf32>) -> tensor<2x2x4xf32>
  return %2 : tensor<2x2x4xf32>
}

// -----

// Reshapes of the tensor dialect, also where a split differs from the merge: it becomes a merge and a split.
// CHECK-LABEL: @in_tensor
// CHECK: %[[EXPANDED:.*]] = tensor.expand_shape %arg0 {{.*}} : tensor<2x3x8xf32> into tensor<2x3x2x4xf32>
// CHECK: %[[EXP:.*]] = math.exp %[[EXPANDED]] : tensor<2x3x2x4xf32>
// CHECK: %[[COLLAPSED:.*]] = tensor.collapse_shape %[[EXP]] {{.*}} : tensor<2x3x2x4xf32> into tensor<2x3x8xf32>
// CHECK: return %[[COLLAPSED]]
func.func @in_tensor(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x8xf32> into tensor<6x8xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [6, 2, 4] : tensor<6x8xf32> into tensor<6x2x4xf32>
  %2 = math.exp %1 : tensor<6x2x4xf32>
  %3 = tensor.collapse_shape %2 [[0], [1, 2]] : tensor<6x2x4xf32> into tensor<6x8xf32>
  %4 = tensor.expand_shape %3 [[0, 1], [2]] output_shape [2, 3, 8] : tensor<6x8xf32> into tensor<2x3x8xf32>
  return %4 : tensor<2x3x8xf32>
}
// CHECK-LABEL: @split_differently
// CHECK: %[[EXP:.*]] = math.exp %arg0 : tensor<2x3xf32>
// CHECK: %[[COLLAPSED:.*]] = tensor.collapse_shape %[[EXP]] {{.*}} : tensor<2x3xf32> into tensor<6xf32>
// CHECK: tensor.expand_shape %[[COLLAPSED]] {{.*}} : tensor<6xf32> into tensor<3x2xf32>
func.func @split_differently(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %1 = math.exp %0 : tensor<6xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [3, 2] : tensor<6xf32> into tensor<3x2xf32>
  return %2 : tensor<3x2xf32>
}
