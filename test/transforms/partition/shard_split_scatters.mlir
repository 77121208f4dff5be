// RUN: shard-opt %s --shard-split-scatters --verify-each | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=LOCAL
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo | FileCheck %s --check-prefix=LOCAL

sdy.mesh @mesh = <["d"=2, "s"=4]>

// A window of one element for each element of a batch, as of a key in a cache: its dimension becomes one of the indices.
// CHECK-LABEL: func @one_element
// CHECK:      %[[INDICES:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] {{.*}}<@mesh, [{"d"}, {}, {}]>{{.*}} : (tensor<8x1xi32>) -> tensor<8x1x1xi32>
// CHECK:      "stablehlo.scatter"(%arg0, %[[INDICES]], %arg2) <{indices_are_sorted = true
// CHECK-SAME: update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2
// CHECK-NOT:  stablehlo.select
// LOCAL-LABEL: func @one_element
// LOCAL-NOT:  {{all_gather|all_to_all|all_reduce}}
// LOCAL:      "stablehlo.scatter"{{.*}}
// LOCAL-NOT:  {{all_gather|all_to_all|all_reduce}}
func.func @one_element(%cache: tensor<8x32x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {"s"}, {}]>},
                       %positions: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>},
                       %keys: tensor<8x1x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}, {}]>})
    -> (tensor<8x32x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {"s"}, {}]>}) {
  %0 = "stablehlo.scatter"(%cache, %positions, %keys) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {"s"}, {}]>]>} : (tensor<8x32x6xf32>, tensor<8x1xi32>, tensor<8x1x6xf32>) -> tensor<8x32x6xf32>
  return %0 : tensor<8x32x6xf32>
}

// Windows of three elements: those that begin outside of 0 to 29 are not written. The other component is repeated.
// CHECK-LABEL: func @several
// CHECK-DAG:  %[[OTHER:.*]] = stablehlo.slice %arg1 [0:5, 0:1]
// CHECK-DAG:  %[[START:.*]] = stablehlo.slice %arg1 [0:5, 1:2]
// CHECK-DAG:  stablehlo.constant dense<29> : tensor<i32>
// CHECK-DAG:  stablehlo.compare GT, %[[START]], %{{.*}}
// CHECK-DAG:  stablehlo.compare LT, %[[START]], %{{.*}}
// CHECK-DAG:  stablehlo.constant dense<-3> : tensor<i32>
// CHECK-DAG:  %[[INSIDE:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[START]]
// CHECK-DAG:  %[[FIRST:.*]] = stablehlo.broadcast_in_dim %[[INSIDE]], dims = [1, 2] {{.*}} -> tensor<3x5x1xi32>
// CHECK-DAG:  %[[STEPS:.*]] = stablehlo.iota dim = 0 {{.*}} : tensor<3x5x1xi32>
// CHECK-DAG:  %[[ROWS:.*]] = stablehlo.add %[[FIRST]], %[[STEPS]]
// CHECK-DAG:  %[[COLUMNS:.*]] = stablehlo.broadcast_in_dim %[[OTHER]], dims = [1, 2] {{.*}} -> tensor<3x5x1xi32>
// CHECK:      %[[INDICES:.*]] = stablehlo.concatenate %[[COLUMNS]], %[[ROWS]], dim = 2
// CHECK:      "stablehlo.scatter"(%arg0, %[[INDICES]], %arg2) <{indices_are_sorted = false
// CHECK-SAME: update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 2
// LOCAL-LABEL: func @several
// LOCAL-NOT:  {{all_gather|all_to_all|all_reduce}}
// LOCAL:      "stablehlo.scatter"{{.*}}
func.func @several(%a: tensor<32x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}, {}]>}, %indices: tensor<5x2xi32>, %updates: tensor<3x5x2xf32>)
    -> (tensor<32x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}, {}]>}) {
  %0 = "stablehlo.scatter"(%a, %indices, %updates) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    %1 = stablehlo.add %old, %new : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"s"}, {}]>]>} : (tensor<32x6xf32>, tensor<5x2xi32>, tensor<3x5x2xf32>) -> tensor<32x6xf32>
  return %0 : tensor<32x6xf32>
}

// One window, whose index has no dimension of components.
// CHECK-LABEL: func @one_window
// CHECK:      stablehlo.reshape %arg1 {{.*}} : (tensor<i32>) -> tensor<1xi32>
// CHECK:      stablehlo.iota dim = 0 {{.*}} : tensor<2x1xi32>
// CHECK:      "stablehlo.scatter"(%arg0, %{{.*}}, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}>
func.func @one_window(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}]>}, %index: tensor<i32>, %updates: tensor<2xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}]>}) {
  %0 = "stablehlo.scatter"(%a, %index, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"s"}]>]>} : (tensor<8xf32>, tensor<i32>, tensor<2xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Unchanged: windows of several elements with indices of a type that cannot be negative, or that not all elements have,
// and windows along a dimension that is not sharded.
// CHECK-LABEL: func @others
// CHECK-NOT:  stablehlo.{{iota|select|broadcast_in_dim}}
// CHECK:      return
func.func @others(%a: tensor<256x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}, {}]>}, %unsigned: tensor<5x1xui32>, %small: tensor<5x1xi8>, %columns: tensor<5x1xi32>,
                  %updates: tensor<5x2x6xf32>, %of_columns: tensor<5x256x2xf32>) -> (tensor<256x6xf32>, tensor<256x6xf32>, tensor<256x6xf32>) {
  %0 = "stablehlo.scatter"(%a, %unsigned, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"s"}, {}]>]>} : (tensor<256x6xf32>, tensor<5x1xui32>, tensor<5x2x6xf32>) -> tensor<256x6xf32>
  %1 = "stablehlo.scatter"(%a, %small, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"s"}, {}]>]>} : (tensor<256x6xf32>, tensor<5x1xi8>, tensor<5x2x6xf32>) -> tensor<256x6xf32>
  %2 = "stablehlo.scatter"(%a, %columns, %of_columns) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"s"}, {}]>]>} : (tensor<256x6xf32>, tensor<5x1xi32>, tensor<5x256x2xf32>) -> tensor<256x6xf32>
  return %0, %1, %2 : tensor<256x6xf32>, tensor<256x6xf32>, tensor<256x6xf32>
}
