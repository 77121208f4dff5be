// RUN: shard-opt %s --shard-optimize-communication | FileCheck %s --check-prefix=SHARD
// RUN: shard-opt %s --shard-optimize-communication='collectives=stablehlo' | FileCheck %s --check-prefix=HLO

shard.grid @grid(shape = 2)

// Equal all-reduces become one, which moves after the additions; later ops run on shards.
// SHARD-LABEL: func.func @shard
// SHARD-NEXT: %[[PARTIAL:.*]] = arith.addf %arg0, %arg1
// SHARD-NEXT: %[[OWN:.*]] = shard.reduce_scatter %[[PARTIAL]] on @grid grid_axes = [0] scatter_dim = 0
// SHARD-NEXT: %[[NEGATED:.*]] = arith.negf %[[OWN]] : tensor<4xf32>
// SHARD-NEXT: %[[ALL:.*]] = shard.all_gather %[[NEGATED]] on @grid grid_axes = [0] gather_axis = 0
// SHARD-NEXT: return %[[ALL]]
func.func @shard(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %1 = shard.all_reduce %b on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %unused = shard.all_gather %b on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %2 = arith.addf %0, %1 : tensor<8xf32>
  %3 = arith.negf %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// The two all-reduces become one of two tensors, and the equal gathers become one.
// HLO-LABEL: func.func @stablehlo
// HLO-NEXT: %[[ALL:.*]] = "stablehlo.all_gather"(%arg0)
// HLO-NEXT: %[[SUMS:.*]]:2 = "stablehlo.all_reduce"(%arg0, %arg1)
// HLO-NOT: stablehlo.all
// HLO: return %[[SUMS]]#0, %[[SUMS]]#1, %[[ALL]], %[[ALL]]
func.func @stablehlo(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<16xf32>, tensor<16xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<8xf32>) -> tensor<16xf32>
  %3 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<8xf32>) -> tensor<16xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<16xf32>, tensor<16xf32>
}
