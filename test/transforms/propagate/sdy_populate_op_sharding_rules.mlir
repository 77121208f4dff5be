// RUN: shard-opt %s --sdy-populate-op-sharding-rules | FileCheck %s

// CHECK-LABEL: func.func @arith
// CHECK-NEXT: arith.addf {{.*}}<([i, j], [i, j])->([i, j]) {i=4, j=8}>
// CHECK-NEXT: arith.select {{.*}} : tensor<4x8xf32>
// CHECK-NEXT: math.exp {{.*}}<([i, j])->([i, j]) {i=4, j=8}>
func.func @arith(%a: tensor<4x8xf32>, %p: i1) -> tensor<4x8xf32> {
  %0 = arith.addf %a, %a : tensor<4x8xf32>
  %1 = arith.select %p, %a, %0 : tensor<4x8xf32>
  %2 = math.exp %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @linalg
// CHECK: linalg.matmul {{.*}}<([i, k], [k, j], [i, j])->([i, j]) {i=4, j=16, k=8} reduction={k}>
// CHECK: linalg.transpose {{.*}}<([j, i], [i, j])->([i, j]) {i=16, j=4}>
// CHECK: linalg.broadcast {{.*}}<([i], [i, j])->([i, j]) {i=16, j=4}>
// CHECK: linalg.reduce {{.*}}<([i, j], [i])->([i]) {i=16, j=4} reduction={j}>
// CHECK: linalg.softmax {{.*}}<([i, j], [i, j])->([i, j]) {i=16, j=4} need_replication={j}>
// CHECK: linalg.generic {{.*}}sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i])->([i]) {i=4, j=4} need_replication={i, j}>
func.func @linalg(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>, %c: tensor<4x16xf32>, %t: tensor<16x4xf32>, %v: tensor<16xf32>, %d: tensor<4xf32>, %s: tensor<4x4xf32>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = linalg.transpose ins(%0 : tensor<4x16xf32>) outs(%t : tensor<16x4xf32>) permutation = [1, 0]
  %2 = linalg.broadcast ins(%v : tensor<16xf32>) outs(%t : tensor<16x4xf32>) dimensions = [1]
  %3 = linalg.reduce {arith.addf} ins(%2 : tensor<16x4xf32>) outs(%v : tensor<16xf32>) dimensions = [1]
  %4 = linalg.softmax dimension(1) ins(%1 : tensor<16x4xf32>) outs(%t : tensor<16x4xf32>) -> tensor<16x4xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0, d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%s : tensor<4x4xf32>) outs(%d : tensor<4xf32>) {
    ^bb0(%i: f32, %o: f32):
      linalg.yield %i : f32
    } -> tensor<4xf32>
  return
}
