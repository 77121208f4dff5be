// RUN: shard-opt %s --split-input-file --spmd-pipeline --shard-communication-report 2>&1 >/dev/null | FileCheck %s
// RUN: shard-opt %s --split-input-file --spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// In programs of torch-mlir, one empty tensor of each type, and one fill of it, are the inits of all ops of that type.
// This does not tie weights to activations.

// Data parallelism with constant weights: no communication is needed, and the weights stay replicated.
sdy.mesh @mesh = <["data"=2]>

// CHECK: no collectives
// LOCAL-LABEL: func.func @main(%arg0: tensor<16x32xf32>) -> tensor<16x32xf32>
// LOCAL: linalg.transpose ins(%{{.*}} : tensor<32x32xf32>) outs(%{{.*}} : tensor<32x32xf32>)
// LOCAL: linalg.matmul ins(%{{.*}} : tensor<16x32xf32>, tensor<32x32xf32>) outs(%[[INIT:.*]] : tensor<16x32xf32>)
// LOCAL: linalg.matmul ins(%{{.*}} : tensor<16x32xf32>, tensor<32x32xf32>) outs(%[[INIT]] : tensor<16x32xf32>)
func.func @main(%x: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<32x32xf32> {
  %w = arith.constant dense_resource<w> : tensor<32x32xf32>
  %v = arith.constant dense_resource<v> : tensor<32x32xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %wt = linalg.transpose ins(%w : tensor<32x32xf32>) outs(%empty : tensor<32x32xf32>) permutation = [1, 0]
  %0 = linalg.matmul ins(%x, %wt : tensor<32x32xf32>, tensor<32x32xf32>) outs(%fill : tensor<32x32xf32>) -> tensor<32x32xf32>
  %vt = linalg.transpose ins(%v : tensor<32x32xf32>) outs(%empty : tensor<32x32xf32>) permutation = [1, 0]
  %1 = linalg.matmul ins(%0, %vt : tensor<32x32xf32>, tensor<32x32xf32>) outs(%fill : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// -----

// Tensor parallelism by rows and columns: only the sum of the second product is communicated.
sdy.mesh @mesh = <["data"=2, "model"=2]>
#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// CHECK: all_reduce model=2 {{.*}} 2,048 B
// CHECK: 1 collective {{.*}} 2,048 B
func.func @main(%x: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
                %b: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}]>},
                %v: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %wt = linalg.transpose ins(%w : tensor<32x32xf32>) outs(%empty : tensor<32x32xf32>) permutation = [1, 0]
  %0 = linalg.matmul ins(%x, %wt : tensor<32x32xf32>, tensor<32x32xf32>) outs(%fill : tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = linalg.generic {indexing_maps = [#matrix, #row, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<32x32xf32>, tensor<32xf32>) outs(%empty : tensor<32x32xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    linalg.yield %s : f32
  } -> tensor<32x32xf32>
  %vt = linalg.transpose ins(%v : tensor<32x32xf32>) outs(%empty : tensor<32x32xf32>) permutation = [1, 0]
  %2 = linalg.matmul ins(%1, %vt : tensor<32x32xf32>, tensor<32x32xf32>) outs(%fill : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}

// -----

// Positions and a mask computed from them, used by two otherwise unrelated tensors: each device computes its part.
sdy.mesh @mesh = <["x"=2, "y"=2]>
#vector = affine_map<(d0, d1) -> (d1)>
#first = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>
#line = affine_map<(d0) -> (d0)>

// CHECK: no collectives
// LOCAL-LABEL: func.func @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x8xf32>) -> (tensor<8x16xf32>, tensor<16x8xf32>)
func.func @main(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<16xi64>
  %positions = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%line : tensor<16xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<16xi64>
  %bits = tensor.empty() : tensor<16x16xi1>
  %mask = linalg.generic {indexing_maps = [#vector, #first, #both], iterator_types = ["parallel", "parallel"]}
      ins(%positions, %positions : tensor<16xi64>, tensor<16xi64>) outs(%bits : tensor<16x16xi1>) {
  ^bb0(%column: i64, %row: i64, %out: i1):
    %c = arith.cmpi sle, %column, %row : i64
    linalg.yield %c : i1
  } -> tensor<16x16xi1>
  %empty = tensor.empty() : tensor<16x16xf32>
  %0 = linalg.generic {indexing_maps = [#both, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %a : tensor<16x16xi1>, tensor<16x16xf32>) outs(%empty : tensor<16x16xf32>) {
  ^bb0(%m: i1, %in: f32, %out: f32):
    %s = arith.select %m, %in, %zero : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %1 = linalg.generic {indexing_maps = [#both, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %b : tensor<16x16xi1>, tensor<16x16xf32>) outs(%empty : tensor<16x16xf32>) {
  ^bb0(%m: i1, %in: f32, %out: f32):
    %s = arith.select %m, %in, %zero : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  return %0, %1 : tensor<16x16xf32>, tensor<16x16xf32>
}
