// RUN: shard-opt %s --split-input-file --shard-extract-to-gather | FileCheck %s
// RUN: shard-opt %s --split-input-file --spmd-pipeline | FileCheck %s --check-prefix=LOCAL

#ids = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
sdy.mesh @mesh = <["data"=2, "model"=2]>

// An embedding: the table stays sharded along the dimension of the lookup.
// CHECK: module attributes {mlir_shard.without_stablehlo}
// CHECK-LABEL: func.func @embedding
// CHECK: %[[STARTS:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<8xi64>) {{.*}} {
// CHECK: %[[ROWS:.*]] = "stablehlo.gather"(%arg1, %[[STARTS]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
// CHECK-NEXT: return %[[ROWS]]
// LOCAL-NOT: stablehlo
// LOCAL-LABEL: func.func @embedding(%arg0: tensor<4xi64>, %arg1: tensor<32768x4xf32>) -> tensor<4x4xf32>
// LOCAL-NOT: all_gather
// LOCAL: tensor.extract %arg1
// LOCAL: shard.all_reduce {{.*}} grid_axes = [1] : tensor<4x4xf32>
// LOCAL-NOT: stablehlo
func.func @embedding(%ids: tensor<8xi64> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>},
                     %table: tensor<65536x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi64>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %i = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<65536x4xf32>
    linalg.yield %x : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
sdy.mesh @mesh = <["data"=2, "model"=2]>

// The rest of the body keeps the inputs and asserts that it needs.
// CHECK-LABEL: func.func @asserts
// CHECK: %[[ROWS:.*]] = "stablehlo.gather"
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[ROWS]] : tensor<8xi64>, tensor<8x4xf32>)
// CHECK-NEXT: ^bb0(%[[ID:.*]]: i64, %[[ROW:.*]]: f32, %{{.*}}: f32):
// CHECK: cf.assert
// CHECK-NOT: linalg.index
// CHECK: %[[NEGATED:.*]] = arith.negf %[[ROW]]
// CHECK-NEXT: linalg.yield %[[NEGATED]]
// LOCAL-LABEL: func.func @asserts
// LOCAL-NOT: shard.all_
func.func @asserts(%ids: tensor<8xi64> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>},
                   %table: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<8x4xf32> {
  %c16 = arith.constant 16 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi64>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %i = arith.index_cast %in : i64 to index
    %ok = arith.cmpi slt, %i, %c16 : index
    cf.assert %ok, "index must be smaller than dim size"
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<16x4xf32>
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

#row = affine_map<(d0, d1) -> (d0, 0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
sdy.mesh @mesh = <["data"=2]>

// If all indices are loop indices, an input with an indexing map suffices: here that of a transpose.
// CHECK: #[[TRANSPOSED:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NOT: without_stablehlo
// CHECK-LABEL: func.func @loops
// CHECK-NOT: gather
// CHECK: linalg.generic {indexing_maps = [#[[TRANSPOSED]], #{{.*}}], {{.*}} ins(%arg0 : tensor<4x8xf32>)
// LOCAL-LABEL: func.func @loops(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32>
// LOCAL-NOT: shard.all_gather
func.func @loops(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<8x4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%j, %i] : tensor<4x8xf32>
    linalg.yield %v : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

#row = affine_map<(d0) -> (d0)>
sdy.mesh @mesh = <["data"=2]>

// The element of each row that a label selects, as in losses: rows are sharded in the same way as labels.
// CHECK-LABEL: func.func @labels
// CHECK: "stablehlo.gather"(%arg0, %{{.*}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>
// LOCAL-LABEL: func.func @labels(%arg0: tensor<4x16xf32>, %arg1: tensor<4xi32>) -> tensor<4xf32>
// LOCAL-NOT: shard.all_
func.func @labels(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %labels: tensor<8xi32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%labels : tensor<8xi32>) outs(%e : tensor<8xf32>) {
  ^bb0(%label: i32, %out: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %label : i32 to index
    %v = tensor.extract %x[%i, %j] : tensor<8x16xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#ij = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#i = affine_map<(d0, d1, d2) -> (d1)>
sdy.mesh @mesh = <["data"=2]>

// The two computed indices of a resize become a tensor of pairs. The first dimension is not indexed.
// CHECK-LABEL: func.func @resize
// CHECK: tensor.empty() : tensor<6x6x2xi64>
// CHECK: "stablehlo.gather"(%arg0, %{{.*}}) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1, 2], start_index_map = [1, 2], index_vector_dim = 2>, slice_sizes = array<i64: 4, 1, 1>}> : (tensor<4x3x3xf32>, tensor<6x6x2xi64>) -> tensor<6x6x4xf32>
// LOCAL-LABEL: func.func @resize(%arg0: tensor<2x3x3xf32>) -> tensor<2x6x6xf32>
// LOCAL-NOT: shard.all_
func.func @resize(%x: tensor<4x3x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {}]>}) -> tensor<4x6x6xf32> {
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<4x6x6xf32>
  %0 = linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<4x6x6xf32>) {
  ^bb0(%out: f32):
    %n = linalg.index 0 : index
    %h = linalg.index 1 : index
    %w = linalg.index 2 : index
    %y = arith.divui %h, %c2 : index
    %z = arith.divui %w, %c2 : index
    %v = tensor.extract %x[%n, %y, %z] : tensor<4x3x3xf32>
    linalg.yield %v : f32
  } -> tensor<4x6x6xf32>
  return %0 : tensor<4x6x6xf32>
}

// -----

#d = affine_map<(d0) -> (d0)>

// An index that is itself extracted becomes a gather, too.
// CHECK-LABEL: func.func @twice
// CHECK: %[[INNER:.*]] = "stablehlo.gather"(%arg1
// CHECK: linalg.generic {{.*}} ins(%[[INNER]] :
// CHECK: "stablehlo.gather"(%arg2
// CHECK-NOT: tensor.extract
func.func @twice(%ids: tensor<8xi64>, %order: tensor<8xi64>, %x: tensor<16xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#d, #d], iterator_types = ["parallel"]} ins(%ids : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %k = tensor.extract %order[%i] : tensor<8xi64>
    %j = arith.index_cast %k : i64 to index
    %v = tensor.extract %x[%j] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#d = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// Extracts stay if their index depends on a value that the body has written, or if their tensor is dynamic.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: stablehlo
// CHECK-COUNT-2: tensor.extract
func.func @stay(%x: tensor<16xf32>, %y: tensor<?xf32>, %s: tensor<8xi64>, %t: tensor<i64>) -> tensor<i64> {
  %0 = linalg.generic {indexing_maps = [#d, #none], iterator_types = ["reduction"]} ins(%s : tensor<8xi64>) outs(%t : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %i = arith.index_cast %out : i64 to index
    %v = tensor.extract %x[%i] : tensor<16xf32>
    %j = arith.index_cast %in : i64 to index
    %w = tensor.extract %y[%j] : tensor<?xf32>
    %sum = arith.addf %v, %w : f32
    %next = arith.fptosi %sum : f32 to i64
    linalg.yield %next : i64
  } -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

#d = affine_map<(d0) -> (d0)>

// So do extracts in loops over memory, from tensors that the body creates, and with a type too narrow for the indices.
// CHECK-LABEL: func.func @memory
// CHECK: linalg.generic {{.*}} ins(%arg1 : memref<4xi64>) outs(%arg2 : memref<4xf32>)
// CHECK: tensor.extract %arg0
func.func @memory(%x: tensor<16xf32>, %ids: memref<4xi64>, %into: memref<4xf32>) {
  linalg.generic {indexing_maps = [#d, #d], iterator_types = ["parallel"]} ins(%ids : memref<4xi64>) outs(%into : memref<4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %v = tensor.extract %x[%i] : tensor<16xf32>
    linalg.yield %v : f32
  }
  return
}

// CHECK-LABEL: func.func @made_in_the_body
// CHECK: tensor.from_elements
// CHECK: tensor.extract
// CHECK-LABEL: func.func @narrow
// CHECK: stablehlo.gather
func.func @made_in_the_body(%ids: tensor<4xi64>) -> tensor<4xi64> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4xi64>
  %0 = linalg.generic {indexing_maps = [#d, #d], iterator_types = ["parallel"]} ins(%ids : tensor<4xi64>) outs(%e : tensor<4xi64>) {
  ^bb0(%id: i64, %out: i64):
    %t = tensor.from_elements %id : tensor<1xi64>
    %v = tensor.extract %t[%c0] : tensor<1xi64>
    linalg.yield %v : i64
  } -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
func.func @narrow(%x: tensor<512xf32>) -> tensor<512xf32> {
  %e = tensor.empty() : tensor<512xf32>
  %0 = linalg.generic {indexing_maps = [#d], iterator_types = ["parallel"]} outs(%e : tensor<512xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i8
    %m = arith.index_cast %n : i8 to index
    %v = tensor.extract %x[%m] : tensor<512xf32>
    linalg.yield %v : f32
  } -> tensor<512xf32>
  return %0 : tensor<512xf32>
}
