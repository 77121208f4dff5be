// RUN: shard-opt %s --sdy-convert-global-to-local | FileCheck %s

sdy.mesh @mesh = <["a"=2, "b"=3]>

// Every shard of the result is in the same shard of the operand, at the same position.
// CHECK-LABEL: func @at_the_same_place(
// CHECK-NEXT:    %[[EVERY:.*]] = stablehlo.slice %arg0 [1:6:2, 0:2] : (tensor<6x2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:    %[[THIRD:.*]] = stablehlo.slice %arg0 [1:6:3, 1:2:2] : (tensor<6x2xf32>) -> tensor<2x1xf32>
// CHECK-NEXT:    return %[[EVERY]], %[[THIRD]]
func.func @at_the_same_place(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
        tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.slice %x [1:12:2, 0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<12x6xf32>) -> tensor<6x6xf32>
  %1 = stablehlo.slice %x [1:11:3, 1:6:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<12x6xf32>) -> tensor<4x3xf32>
  return %0, %1 : tensor<6x6xf32>, tensor<4x3xf32>
}

// The first shard takes the end of its operand shard, the second one the beginning.
// CHECK-LABEL: func @at_other_places(
// CHECK:         stablehlo.constant dense<[3, 3, 3, 1, 1, 1]> : tensor<6xi64>
// CHECK:         %[[STRETCH:.*]] = stablehlo.dynamic_slice %arg0, %{{.*}}, %{{.*}}, sizes = [3, 6]
// CHECK-NEXT:    %[[TAKEN:.*]] = stablehlo.slice %[[STRETCH]] [0:3:2, 0:6] : (tensor<3x6xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:    return %[[TAKEN]]
func.func @at_other_places(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.slice %x [3:10:2, 0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<12x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// Operands are replicated: every device computes the entire result and slices its shard.
// CHECK-LABEL: func @whole_scatter(
// CHECK:         %[[ALL:.*]] = "stablehlo.scatter"(%arg0, %arg1, %arg2)
// CHECK:         }) : (tensor<12xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<12xf32>
// CHECK:         %[[OWN:.*]] = stablehlo.dynamic_slice %[[ALL]], %{{.*}}, sizes = [6]
// CHECK-NEXT:    return %[[OWN]]
func.func @whole_scatter(%x: tensor<12xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>)
    -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, unique_indices = false,
      scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<12xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}
