// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func @rules
func.func @rules(%a: tensor<2x12xf32>, %b: tensor<12x4xf32>, %c: tensor<f32>) {
  // CHECK: sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=2, j=12, k=4} reduction={j}>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=2, j=12, k=4} reduction={j}>} : (tensor<2x12xf32>, tensor<12x4xf32>) -> tensor<2x4xf32>
  // CHECK: #sdy.op_sharding_rule<([i, jk])->([ij, k]) {i=2, j=3, k=4}>
  %1 = stablehlo.reshape %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([ij, k]) {i=2, j=3, k=4}>} : (tensor<2x12xf32>) -> tensor<6x4xf32>
  // CHECK: #sdy.op_sharding_rule<([i, j], [])->([j, i]) {i=2, j=12} need_replication={i} permutation={j} blocked_propagation={i, j}, custom>
  %2 = stablehlo.custom_call @f(%a, %c) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([j, i]) {i=2, j=12} need_replication={i} permutation={j} blocked_propagation={i, j}, custom>} : (tensor<2x12xf32>, tensor<f32>) -> tensor<12x2xf32>
  return
}

// After z come z_1, z_2, ...
// CHECK-LABEL: func @many_factors
func.func @many_factors(%a: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x2x3xf32>) {
  // CHECK: #sdy.op_sharding_rule<([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, z_1, z_2])->([z_1z_2])
  // CHECK-SAME: z=1, z_1=2, z_2=3}
  %0 = stablehlo.reshape %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, z_1, z_2])->([z_1z_2]) {i=1, j=1, k=1, l=1, m=1, n=1, o=1, p=1, q=1, r=1, s=1, t=1, u=1, v=1, w=1, x=1, y=1, z=1, z_1=2, z_2=3}>} : (tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x2x3xf32>) -> tensor<6xf32>
  return
}

// CHECK-LABEL: func @propagation_edges
func.func @propagation_edges(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  // CHECK: sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [operand-1, result-0]}, {"y":(1)2 = operand-1 -> [result-0]}]}, {step-12 = [{"y":(2)2 = operand-1 -> [result-0]}]}]>
  %0 = stablehlo.add %a, %a {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [operand-1, result-0]}, {"y":(1)2 = operand-1 -> [result-0]}]}, {step-12 = [{"y":(2)2 = operand-1 -> [result-0]}]}]>} : tensor<8x8xf32>
  // CHECK: sdy.result_propagation_edges = [#sdy.propagation_edges<[{step-3 = [{"x" = operand-0 -> [result-0]}]}]>]
  %1 = sdy.named_computation<"f">(%0) (%b: tensor<8x8xf32>) {
    sdy.return %b : tensor<8x8xf32>
  } {sdy.block_arg_propagation_edges = [], sdy.result_propagation_edges = [#sdy.propagation_edges<[{step-3 = [{"x" = operand-0 -> [result-0]}]}]>]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

// Arguments and results of a function may have propagation edges, too.
// CHECK-LABEL: func private @signature
// CHECK-SAME: sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"x" = operand-0 -> [result-0]}]}]>
func.func private @signature(tensor<8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"x" = operand-0 -> [result-0]}]}]>})
