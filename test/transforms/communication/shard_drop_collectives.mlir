// RUN: shard-opt %s --shard-drop-collectives | FileCheck %s

shard.grid @grid(shape = 2x1)

// Channels do not count, but devices and reductions do; unused collectives are erased.
// CHECK-LABEL: func.func @equal
// CHECK-NEXT: %[[A:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-NEXT: %[[SUM:.*]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[MAX:.*]] = "stablehlo.all_reduce"(%arg0)
// CHECK-NOT: stablehlo.all
// CHECK: return %[[A]], %[[A]], %[[SUM]], %[[SUM]], %[[MAX]]
func.func @equal(%a: tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<8xf32>) -> tensor<16xf32>
  %1 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}> : (tensor<8xf32>) -> tensor<16xf32>
  %unused = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}> : (tensor<8xf32>) -> tensor<16xf32>
  %2 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %max = stablehlo.maximum %left, %right : tensor<f32>
    stablehlo.return %max : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3, %4 : tensor<16xf32>, tensor<16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// A collective in a branch reuses an equal one before the branch, but not one in the other branch.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT: %[[A:.*]] = shard.all_gather %arg0
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[OTHER:.*]] = shard.all_gather %arg1
// CHECK-NEXT: arith.addf %[[A]], %[[OTHER]]
// CHECK: } else {
// CHECK-NEXT: %[[AGAIN:.*]] = shard.all_gather %arg1
// CHECK-NEXT: arith.subf %[[A]], %[[AGAIN]]
func.func @branches(%a: tensor<8xf32>, %b: tensor<8xf32>, %condition: i1) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %1 = scf.if %condition -> tensor<16xf32> {
    %2 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
    %3 = shard.all_gather %b on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
    %4 = arith.addf %2, %3 : tensor<16xf32>
    scf.yield %4 : tensor<16xf32>
  } else {
    %2 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
    %3 = shard.all_gather %b on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
    %4 = arith.subf %2, %3 : tensor<16xf32>
    scf.yield %4 : tensor<16xf32>
  }
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// CHECK-LABEL: func.func @alone
// CHECK-NEXT: return %arg0, %arg0
func.func @alone(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
