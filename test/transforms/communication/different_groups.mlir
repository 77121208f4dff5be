// No pass merges collectives that differ only in their groups of devices.

// RUN: shard-opt %s --shard-merge-collectives | FileCheck %s
// RUN: shard-opt %s --shard-drop-collectives | FileCheck %s
// RUN: shard-opt %s --shard-join-collectives | FileCheck %s
// RUN: shard-opt %s --shard-sink-reductions | FileCheck %s
// RUN: shard-opt %s --shard-optimize-communication=collectives=stablehlo | FileCheck %s

// CHECK-LABEL: func.func @stablehlo_sums
// CHECK-DAG: "stablehlo.all_reduce"(%arg0) <{{.*}}replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK-DAG: "stablehlo.all_reduce"(%arg0) <{{.*}}replica_groups = dense<{{\[\[}}0, 2], [1, 3]]>
// CHECK: return
func.func @stablehlo_sums(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// One collective numbers the devices within replicas, and the other numbers all devices.
// CHECK-LABEL: func.func @stablehlo_channels
// CHECK-COUNT-2: "stablehlo.all_reduce"(%arg{{[01]}}) <
// CHECK: return
func.func @stablehlo_channels(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// The groups of one collective are of devices, and those of the other are of replicas.
// CHECK-LABEL: func.func @stablehlo_global_ids
// CHECK-COUNT-2: "stablehlo.all_reduce"(%arg{{[01]}}) <
// CHECK: return
func.func @stablehlo_global_ids(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 8, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 9, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A sum of all-reduces over different groups of devices: neither can use the groups of the other.
// CHECK-LABEL: func.func @stablehlo_added
// CHECK-DAG: %[[A:.*]] = "stablehlo.all_reduce"(%arg0) <{{.*}}replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK-DAG: %[[B:.*]] = "stablehlo.all_reduce"(%arg1) <{{.*}}replica_groups = dense<{{\[\[}}0, 2], [1, 3]]>
// CHECK: stablehlo.add %[[A]], %[[B]]
func.func @stablehlo_added(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A tensor is scattered in some groups and gathered in others.
// CHECK-LABEL: func.func @stablehlo_scattered
// CHECK: %[[S:.*]] = "stablehlo.reduce_scatter"(%arg0) <{{.*}}replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK: "stablehlo.all_gather"(%[[S]]) <{{.*}}replica_groups = dense<{{\[\[}}0, 2], [1, 3]]>
func.func @stablehlo_scattered(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.reduce_scatter"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<2xf32>
  %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

shard.grid @grid(shape = 2x2)

// CHECK-LABEL: func.func @shard_sums
// CHECK-DAG: shard.all_reduce %arg0 on @grid grid_axes = [0]
// CHECK-DAG: shard.all_reduce %arg0 on @grid grid_axes = [1]
// CHECK: return
func.func @shard_sums(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %1 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @shard_gathers
// CHECK-DAG: shard.all_gather %arg0 on @grid grid_axes = [0]
// CHECK-DAG: shard.all_gather %arg0 on @grid grid_axes = [1]
// CHECK: return
func.func @shard_gathers(%a: tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %1 = shard.all_gather %a on @grid grid_axes = [1] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// CHECK-LABEL: func.func @shard_scattered
// CHECK: %[[S:.*]] = shard.reduce_scatter %arg0 on @grid grid_axes = [0]
// CHECK: shard.all_gather %[[S]] on @grid grid_axes = [1]
func.func @shard_scattered(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.reduce_scatter %a on @grid grid_axes = [0] scatter_dim = 0 : tensor<4xf32> -> tensor<2xf32>
  %1 = shard.all_gather %0 on @grid grid_axes = [1] gather_axis = 0 : tensor<2xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
