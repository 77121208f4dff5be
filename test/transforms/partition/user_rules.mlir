// RUN: shard-opt %s --split-input-file --load %examples/attention_dialect.py --spmd-pipeline | FileCheck %s
// RUN: shard-opt %s --split-input-file --load %examples/attention_dialect.py --spmd-pipeline=collectives=stablehlo | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A user's sharding rule suffices to make an op local.
// CHECK-LABEL: func.func @ruled_by_registration
// CHECK-NEXT: %[[SCORES:.*]] = "attn.scores"(%arg0, %arg1) : (tensor<2x4x16x32xf32>, tensor<2x4x16x32xf32>) -> tensor<2x4x16x16xf32>
// CHECK-NEXT: return %[[SCORES]]
func.func @ruled_by_registration(%q: tensor<4x8x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}, {}]>}, %k: tensor<4x8x16x32xf32>) -> tensor<4x8x16x16xf32> {
  %0 = "attn.scores"(%q, %k) : (tensor<4x8x16x32xf32>, tensor<4x8x16x32xf32>) -> tensor<4x8x16x16xf32>
  return %0 : tensor<4x8x16x16xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// So does a custom rule on the op, here JAX's rule for LAPACK: the matrices of a batch are factorized locally.
// CHECK-LABEL: func.func @ruled_by_attribute
// CHECK-NEXT: %[[CALL:.*]]:2 = stablehlo.custom_call @lapack_spotrf_ffi(%arg0)
// CHECK-SAME: (tensor<4x6x6xf32>) -> (tensor<4x6x6xf32>, tensor<4xi32>)
// CHECK-NEXT: return %[[CALL]]#0
func.func @ruled_by_attribute(%a: tensor<8x6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> tensor<8x6x6xf32> {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i]) {i=8, j=6, k=6, l=6, m=6}, custom>} : (tensor<8x6x6xf32>) -> (tensor<8x6x6xf32>, tensor<8xi32>)
  return %0#0 : tensor<8x6x6xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// The dimensions of a matrix correspond in a factorization, but each result needs the entire matrix.
// CHECK-LABEL: func.func @matrix
// CHECK: %[[ALL:.*]] = {{.*}}all_gather{{.*}}tensor<4x3x6xf32>{{.*}}-> tensor<4x6x6xf32>
// CHECK: stablehlo.custom_call @Cholesky(%[[ALL]]) {{.*}}(tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
func.func @matrix(%a: tensor<8x6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>}) -> (tensor<8x6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>}) {
  %0 = stablehlo.custom_call @Cholesky(%a) : (tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  return %0 : tensor<8x6x6xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A tensor that devices along a manual axis exchange stays sharded along the other axes.
// CHECK-LABEL: func.func @collective_of_shards
// CHECK-NOT: gather
// CHECK: "stablehlo.all_reduce"(%arg0)
// CHECK: (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NOT: gather
func.func @collective_of_shards(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x16xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={"x"} (%b: tensor<4x16xf32>) {
    %1 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %2 = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    sdy.return %1 : tensor<4x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A composite without a sharding rule is partitioned by its decomposition, even if that contains composites.
// CHECK-LABEL: func.func @composite_without_rule
// CHECK-SAME: %arg0: tensor<2x4xf32>
// CHECK-NOT: gather
// CHECK: %[[NEGATED:.*]] = stablehlo.negate %arg0 : tensor<2x4xf32>
// CHECK-NEXT: %[[ADDED:.*]] = stablehlo.add %[[NEGATED]], %arg0 : tensor<2x4xf32>
// CHECK-NEXT: return %[[ADDED]]
func.func @composite_without_rule(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x8xf32> {
  %0 = stablehlo.composite "my.residual" %a {composite_attributes = {scale = 2 : i32}, decomposition = @residual, version = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func private @residual(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.composite "my.negate" %a {decomposition = @negate} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %0, %a : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

func.func private @negate(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.negate %a : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A composite with a rule stays one op. Its local decomposition is only declared, once for equal types.
// CHECK-LABEL: func.func @composite_with_rule
// CHECK: %[[ALL:.*]] = {{.*}}all_gather{{.*}}tensor<2x4xf32>{{.*}}-> tensor<2x8xf32>
// CHECK: stablehlo.composite "my.sort" %[[ALL]] {decomposition = @sort_local} : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: stablehlo.composite "my.sort" %{{.*}} {decomposition = @sort_local} : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: func.func private @sort_local(tensor<2x8xf32>) -> tensor<2x8xf32>
func.func @composite_with_rule(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x8xf32> {
  %0 = stablehlo.composite "my.sort" %a {decomposition = @sort, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} need_replication={j}, custom>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.composite "my.sort" %0 {decomposition = @sort, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} need_replication={j}, custom>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

func.func private @sort(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %a : tensor<4x8xf32>
}
