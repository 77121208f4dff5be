// RUN: shard-opt %s --sdy-populate-op-sharding-rules | FileCheck %s
// RUN: shard-opt %s --sdy-populate-op-sharding-rules=conservative-propagation=true | FileCheck %s --check-prefix=CONSERVATIVE

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

// CHECK-LABEL: func.func @stablehlo
// CHECK-NEXT: stablehlo.slice {{.*}}<([i, j])->([i, j]) {i=8, j=16} permutation={i}>
// CHECK-NEXT: stablehlo.concatenate {{.*}}<([i, j], [i, j])->([i, j]) {i=14, j=16} permutation={i}>
// CHECK-NEXT: stablehlo.dot_general {{.*}}<([i, k], [j, k])->([i, j]) {i=8, j=8, k=16} reduction={k}>
// CHECK-NEXT: "stablehlo.sort"
// CHECK: stablehlo.compare {{.*}}<([], [])->([])>
// CHECK: {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={j}>}
// CHECK-NEXT: chlo.erf {{.*}}<([i, j])->([i, j]) {i=8, j=8}>
// CONSERVATIVE-LABEL: func.func @stablehlo
// CONSERVATIVE-NEXT: stablehlo.slice {{.*}}<([i, j])->([i, j]) {i=8, j=16} permutation={i} blocked_propagation={i}>
// CONSERVATIVE-NEXT: stablehlo.concatenate {{.*}}<([j, i], [k, i])->([l, i]) {i=16, j=1, k=1, l=1}>
func.func @stablehlo(%a: tensor<8x16xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.slice %a [1:7, 0:16] : (tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = stablehlo.concatenate %0, %a, dim = 0 : (tensor<6x16xf32>, tensor<8x16xf32>) -> tensor<14x16xf32>
  %2 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  %3 = "stablehlo.sort"(%2) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %5 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = chlo.erf %3 : tensor<8x8xf32> -> tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}

// An op without a rule is not changed, an existing rule stays, and an operand that is not a tensor prevents a rule.
// CHECK-LABEL: func.func @without_and_with
// CHECK-NEXT: stablehlo.constant dense<1.000000e+00> : tensor<4x8xf32>
// CHECK-NEXT: stablehlo.custom_call @some_kernel({{.*}}) : (
// CHECK-NEXT: stablehlo.custom_call @some_kernel({{.*}}) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=4, j=8}, custom>}
// CHECK-NEXT: stablehlo.custom_call @MoveToHost({{.*}}) : (
// CHECK-NEXT: return
func.func @without_and_with(%token: !stablehlo.token) -> tensor<8x4xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
  %1 = stablehlo.custom_call @some_kernel(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.custom_call @some_kernel(%1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=4, j=8}, custom>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.custom_call @MoveToHost(%2, %token) : (tensor<8x4xf32>, !stablehlo.token) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @sdy
// CHECK-NEXT: sdy.sharding_constraint {{.*}}<([i, j])->([i, j]) {i=4, j=8}>
// CHECK-NEXT: sdy.reshard %{{[0-9]+}} <@mesh, [{}, {"x"}]> : tensor<4x8xf32>
func.func @sdy(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<4x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]> : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

sdy.mesh @mesh = <["x"=2]>
