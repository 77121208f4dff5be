// RUN: shard-opt %s -canonicalize | FileCheck %s
// RUN: shard-opt %s -canonicalize=disable-patterns=shard-unused-results | FileCheck %s --check-prefix=DISABLED

#all = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>

// The index of the maximum is unused.
// CHECK-LABEL: @maximum
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x8xf32>) outs(%arg1 : tensor<4xf32>) {
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT:   %[[MOST:.*]] = arith.maximumf %[[IN]], %[[OUT]] : f32
// CHECK-NEXT:   linalg.yield %[[MOST]] : f32
// CHECK: return %[[MAX]]
// DISABLED-LABEL: @maximum
// DISABLED: linalg.index
func.func @maximum(%x: tensor<4x8xf32>, %least: tensor<4xf32>, %first: tensor<4xi64>) -> tensor<4xf32> {
  %0:2 = linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%least, %first : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %1 = linalg.index 1 : index
    %2 = arith.index_cast %1 : index to i64
    %3 = arith.maximumf %in, %out : f32
    %4 = arith.cmpf ogt, %in, %out : f32
    %5 = arith.select %4, %2, %at : i64
    linalg.yield %3, %5 : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %0#0 : tensor<4xf32>
}

// The computation of the index needs the maximum.
// CHECK-LABEL: @index
// CHECK: %[[BOTH:.*]]:2 = linalg.generic
// CHECK: return %[[BOTH]]#1
func.func @index(%x: tensor<4x8xf32>, %least: tensor<4xf32>, %first: tensor<4xi64>) -> tensor<4xi64> {
  %0:2 = linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%least, %first : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %1 = linalg.index 1 : index
    %2 = arith.index_cast %1 : index to i64
    %3 = arith.maximumf %in, %out : f32
    %4 = arith.cmpf ogt, %in, %out : f32
    %5 = arith.select %4, %2, %at : i64
    linalg.yield %3, %5 : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %0#1 : tensor<4xi64>
}
