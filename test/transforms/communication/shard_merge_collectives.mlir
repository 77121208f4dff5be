// RUN: shard-opt %s --shard-merge-collectives | FileCheck %s
// RUN: shard-opt %s --shard-merge-collectives=most-bytes=32 | FileCheck %s --check-prefix=SMALL

// Users of a result move after it; the maximum is another reduction, and the last one depends on the first.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[B:.*]] = stablehlo.negate %arg1
// CHECK-NEXT: %[[MAX:.*]] = "stablehlo.all_reduce"(%arg1)
// CHECK: %[[SUMS:.*]]:2 = "stablehlo.all_reduce"(%arg0, %[[B]])
// CHECK: (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[A:.*]] = stablehlo.negate %[[SUMS]]#0
// CHECK-NEXT: %[[LAST:.*]] = "stablehlo.all_reduce"(%[[A]])
// CHECK: return %[[LAST]], %[[SUMS]]#1, %[[MAX]]

// SMALL-NOT: :2 =
func.func @main(%a: tensor<8xf32>, %b: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  %2 = stablehlo.negate %b : tensor<4xf32>
  %3 = "stablehlo.all_reduce"(%2) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %max = stablehlo.maximum %left, %right : tensor<f32>
    stablehlo.return %max : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %5, %3, %4 : tensor<8xf32>, tensor<4xf32>, tensor<4xf32>
}
