// RUN: not shard-opt %s --split-input-file --shard-communication-report -o /dev/null 2>&1 | FileCheck %s

// Groups are lists of devices; axes are known if they define the groups. Tensors of one collective are one message.

// CHECK: all_reduce {{ *}}2 devices {{ *}}2 {{ *}}160 B {{ *}}640 B {{ *}}2 µs {{ *}}stablehlo.negate
// CHECK: all_gather {{ *}}y=2 {{ *}}2 {{ *}}128 B {{ *}}512 B {{ *}}1 µs {{ *}}stablehlo.add
// CHECK: collective_permute {{ *}}4 devices {{ *}}1 {{ *}}128 B {{ *}}256 B {{ *}}1 µs {{ *}}func.return
// CHECK: collective_permute {{ *}}2 devices {{ *}}1 {{ *}}128 B {{ *}}128 B {{ *}}1 µs {{ *}}func.return

// CHECK: error: 'stablehlo.all_gather' op has a value of unknown size, of type tensor<?x8xf32>

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.negate %a : tensor<4x8xf32>
  %1:2 = "stablehlo.all_reduce"(%0, %b) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  %2 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>}>
      : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.add %2, %2 : tensor<8x8xf32>
  %4 = "stablehlo.collective_permute"(%1#0) <{
      source_target_pairs = dense<[[0, 0], [1, 2], [2, 1], [3, 3]]> : tensor<4x2xi64>}>
      : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "stablehlo.collective_permute"(%4) <{source_target_pairs = dense<[[2, 0]]> : tensor<1x2xi64>}>
      : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %5, %3 : tensor<4x8xf32>, tensor<8x8xf32>
}

// -----

func.func @main(%a: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
