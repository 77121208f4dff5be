// RUN: shard-opt %s --shard-merge-collectives | FileCheck %s
// RUN: shard-opt %s --shard-merge-collectives=most-bytes=32 | FileCheck %s --check-prefix=SMALL

shard.grid @grid(shape = 2x2)

// Tensors are flattened and concatenated. Users of a result move after it: here a division and a slice.
// CHECK-LABEL: func.func @sums
// CHECK-NEXT: %[[ROOT:.*]] = math.sqrt %arg1
// CHECK-NEXT: %[[EMPTY:.*]] = tensor.empty() : tensor<13xf32>
// CHECK-NEXT: %[[FLAT:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1]] : tensor<2x4xf32> into tensor<8xf32>
// CHECK-NEXT: %[[FIRST:.*]] = tensor.insert_slice %[[FLAT]] into %[[EMPTY]][0] [8] [1]
// CHECK-NEXT: %[[SECOND:.*]] = tensor.insert_slice %[[ROOT]] into %[[FIRST]][8] [4] [1]
// CHECK-NEXT: %[[ONE:.*]] = tensor.expand_shape %arg2 [] output_shape [1] : tensor<f32> into tensor<1xf32>
// CHECK-NEXT: %[[ALL:.*]] = tensor.insert_slice %[[ONE]] into %[[SECOND]][12] [1] [1]
// CHECK-NEXT: %[[SUMS:.*]] = shard.all_reduce %[[ALL]] on @grid grid_axes = [1] : tensor<13xf32> -> tensor<13xf32>
// CHECK-NEXT: %[[A:.*]] = tensor.extract_slice %[[SUMS]][0] [8] [1]
// CHECK-NEXT: %[[SHAPED:.*]] = tensor.expand_shape %[[A]] {{\[\[}}0, 1]] output_shape [2, 4]
// CHECK-NEXT: %[[B:.*]] = tensor.extract_slice %[[SUMS]][8] [4] [1]
// CHECK-NEXT: %[[C:.*]] = tensor.extract_slice %[[SUMS]][12] [1] [1]
// CHECK-NEXT: %[[SCALAR:.*]] = tensor.collapse_shape %[[C]] [] : tensor<1xf32> into tensor<f32>
// CHECK-NEXT: %[[DIVIDED:.*]] = arith.divf %[[SHAPED]], %arg0
// CHECK-NEXT: %[[CUT:.*]] = tensor.extract_slice %[[DIVIDED]][0, 0] [1, 4] [1, 1]
// CHECK-NEXT: return %[[CUT]], %[[B]], %[[SCALAR]]

// SMALL-LABEL: func.func @sums
// SMALL: shard.all_reduce %arg0
// SMALL: shard.all_reduce {{.*}} : tensor<5xf32> -> tensor<5xf32>
func.func @sums(%a: tensor<2x4xf32>, %b: tensor<4xf32>, %c: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<2x4xf32> -> tensor<2x4xf32>
  %1 = arith.divf %0, %a : tensor<2x4xf32>
  %2 = tensor.extract_slice %1[0, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
  %3 = math.sqrt %b : tensor<4xf32>
  %4 = shard.all_reduce %3 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %5 = shard.all_reduce %c on @grid grid_axes = [1] : tensor<f32> -> tensor<f32>
  return %2, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<f32>
}

// Each gathered row holds both shards of one device; the shards of a tensor are consecutive in its elements.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[ROW:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [1, 14] : tensor<14xf32> into tensor<1x14xf32>
// CHECK-NEXT: %[[ROWS:.*]] = shard.all_gather %[[ROW]] on @grid grid_axes = [0, 1] gather_axis = 0 : tensor<1x14xf32> -> tensor<4x14xf32>
// CHECK-NEXT: %[[A:.*]] = tensor.extract_slice %[[ROWS]][0, 0] [4, 8] [1, 1] : tensor<4x14xf32> to tensor<4x8xf32>
// CHECK-NEXT: %[[FLAT_A:.*]] = tensor.collapse_shape %[[A]] {{\[\[}}0, 1]] : tensor<4x8xf32> into tensor<32xf32>
// CHECK-NEXT: %[[WHOLE_A:.*]] = tensor.expand_shape %[[FLAT_A]] {{\[\[}}0, 1]] output_shape [8, 4] : tensor<32xf32> into tensor<8x4xf32>
// CHECK-NEXT: %[[B:.*]] = tensor.extract_slice %[[ROWS]][0, 8] [4, 6] [1, 1] : tensor<4x14xf32> to tensor<4x6xf32>
// CHECK-NEXT: %[[FLAT_B:.*]] = tensor.collapse_shape %[[B]] {{\[\[}}0, 1]] : tensor<4x6xf32> into tensor<24xf32>
// CHECK-NEXT: %[[WHOLE_B:.*]] = tensor.expand_shape %[[FLAT_B]] {{\[\[}}0, 1]] output_shape [1, 24] : tensor<24xf32> into tensor<1x24xf32>
// CHECK-NEXT: return %[[WHOLE_A]], %[[WHOLE_B]]
func.func @blocks(%a: tensor<2x4xf32>, %b: tensor<1x6xf32>) -> (tensor<8x4xf32>, tensor<1x24xf32>) {
  %0 = shard.all_gather %a on @grid grid_axes = [0, 1] gather_axis = 0 : tensor<2x4xf32> -> tensor<8x4xf32>
  %1 = shard.all_gather %b on @grid grid_axes = [0, 1] gather_axis = 1 : tensor<1x6xf32> -> tensor<1x24xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<1x24xf32>
}

// Other axes, another reduction, another element type, a dependence between two; shards that are not consecutive in the
// elements; and sizes for which copying takes longer than the latency.
// CHECK-LABEL: func.func @others
// CHECK-NOT: tensor.empty
// CHECK: return
func.func @others(%a: tensor<8xf32>, %h: tensor<8xf16>, %m: tensor<2x4xf32>, %large: tensor<1024x1024xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, tensor<8xf32>, tensor<2x8xf32>, tensor<2x8xf32>,
        tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %1 = shard.all_reduce %a on @grid grid_axes = [1] reduction = max : tensor<8xf32> -> tensor<8xf32>
  %2 = shard.all_reduce %h on @grid grid_axes = [1] : tensor<8xf16> -> tensor<8xf16>
  %3 = arith.negf %0 : tensor<8xf32>
  %4 = shard.all_reduce %3 on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %5 = shard.all_gather %m on @grid grid_axes = [1] gather_axis = 1 : tensor<2x4xf32> -> tensor<2x8xf32>
  %6 = arith.negf %m : tensor<2x4xf32>
  %7 = shard.all_gather %6 on @grid grid_axes = [1] gather_axis = 1 : tensor<2x4xf32> -> tensor<2x8xf32>
  %8 = arith.negf %large : tensor<1024x1024xf32>
  %9 = shard.all_reduce %large on @grid grid_axes = [1] : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %10 = shard.all_reduce %8 on @grid grid_axes = [1] : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  return %4, %1, %2, %0, %5, %7, %9, %10 : tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, tensor<8xf32>, tensor<2x8xf32>,
      tensor<2x8xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// Messages keep their order among the collectives: a send does not wait, and neither do the collectives that it needs.
// CHECK-LABEL: func.func @messages
// CHECK: shard.all_reduce %arg0
// CHECK: shard.send
// CHECK: shard.all_reduce %arg1
func.func @messages(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %sent = shard.send %0 on @grid grid_axes = [1] destination = [0] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shard.all_reduce %b on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  return %sent, %1 : tensor<4xf32>, tensor<4xf32>
}

// The last one depends on the first, whose value is replaced: both are merged before the last one.
// CHECK-LABEL: func.func @one_after_the_other
// CHECK: %[[SUMS:.*]] = shard.all_reduce %{{.*}} on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
// CHECK: %[[A:.*]] = tensor.extract_slice %[[SUMS]][0] [4] [1]
// CHECK: %[[LAST:.*]] = shard.all_reduce %[[A]] on @grid grid_axes = [1]
func.func @one_after_the_other(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %1 = shard.all_reduce %b on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %2 = shard.all_reduce %0 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xf32>
}

// The second two are packed by the same steps as the first two, with their own operands. The third two share their
// operand, and one of the fourth two has no uses: these are packed separately.
// CHECK-LABEL: func.func @repeated
// CHECK: tensor.insert_slice %arg0 into %{{.*}}[0] [4] [1]
// CHECK-NEXT: tensor.insert_slice %arg1 into %{{.*}}[4] [4] [1]
// CHECK-NEXT: %[[SUMS:.*]] = shard.all_reduce %{{.*}} on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = tensor.extract_slice %[[SUMS]][0] [4] [1]
// CHECK-NEXT: %[[B:.*]] = tensor.extract_slice %[[SUMS]][4] [4] [1]
// CHECK-NEXT: %[[C:.*]] = math.exp %[[A]]
// CHECK-NEXT: %[[D:.*]] = math.exp %[[B]]
// CHECK: tensor.insert_slice %[[C]] into %{{.*}}[0] [4] [1]
// CHECK-NEXT: tensor.insert_slice %[[D]] into %{{.*}}[4] [4] [1]
// CHECK-NEXT: %[[SUMS:.*]] = shard.all_reduce %{{.*}} on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = tensor.extract_slice %[[SUMS]][0] [4] [1]
// CHECK-NEXT: %[[B:.*]] = tensor.extract_slice %[[SUMS]][4] [4] [1]
// CHECK-NEXT: %{{.*}} = math.sqrt %[[A]]
// CHECK-NEXT: %[[D:.*]] = math.sqrt %[[B]]
// CHECK: tensor.insert_slice %[[D]] into %{{.*}}[0] [4] [1]
// CHECK-NEXT: tensor.insert_slice %[[D]] into %{{.*}}[4] [4] [1]
// CHECK-NEXT: %[[SUMS:.*]] = shard.all_reduce %{{.*}} on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = tensor.extract_slice %[[SUMS]][0] [4] [1]
// CHECK-NEXT: %[[B:.*]] = tensor.extract_slice %[[SUMS]][4] [4] [1]
// CHECK-NEXT: %[[E:.*]] = math.sin %[[A]]
// CHECK-NEXT: %[[F:.*]] = math.sin %[[B]]
// CHECK: tensor.insert_slice %[[E]] into %{{.*}}[0] [4] [1]
// CHECK-NEXT: tensor.insert_slice %[[F]] into %{{.*}}[4] [4] [1]
// CHECK-NEXT: %[[SUMS:.*]] = shard.all_reduce %{{.*}} on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
// CHECK: %[[G:.*]] = tensor.extract_slice %[[SUMS]][4] [4] [1]
// CHECK: return %[[G]]
func.func @repeated(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %1 = shard.all_reduce %b on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %2 = math.exp %0 : tensor<4xf32>
  %3 = math.exp %1 : tensor<4xf32>
  %4 = shard.all_reduce %2 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %5 = shard.all_reduce %3 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %6 = math.sqrt %4 : tensor<4xf32>
  %7 = math.sqrt %5 : tensor<4xf32>
  %8 = shard.all_reduce %7 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %9 = shard.all_reduce %7 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %10 = math.sin %8 : tensor<4xf32>
  %11 = math.sin %9 : tensor<4xf32>
  %12 = shard.all_reduce %10 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %13 = shard.all_reduce %11 on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  return %13 : tensor<4xf32>
}
