// RUN: shard-run -o %t.npy %s | FileCheck %s
// RUN: python -c "import numpy as np; print(*np.load('%t.npy'))" | FileCheck %s --check-prefix=VALUES
// RUN: shard-run --collectives=stablehlo --function sums --show=local %s | FileCheck %s --check-prefix=TARGET
// RUN: not shard-run --no-verify %S/Inputs/channel_to_a_host.mlir 2>&1 | FileCheck %s --check-prefix=HOST

// Device d holds 2 d and 2 d + 1. The result is the sum over devices 0 and 3, or 1 and 2, plus the device's number.
// CHECK: @main on 4 ranks, compared with it on one, without sharding:
// CHECK: 0       tensor<8xi32>  {{.*}} OK
// VALUES: 6 8 7 9 8 10 9 11

// TARGET: "stablehlo.all_reduce"
// TARGET: 0       tensor<8xf32>  {{.*}} OK

// HOST: channel_to_a_host.mlir:5:10: error: 'stablehlo.collective_permute': its channel_handle is #stablehlo.channel_handle<handle = 1, type = 2>, but channels between devices have type 1
// HOST: shard-run: error: the program cannot be lowered to MPI
// HOST-NOT: Traceback

sdy.mesh @mesh = <["x"=4]>

func.func @main() -> tensor<8xi32> {
  %a = stablehlo.iota dim = 0 : tensor<8xi32>
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xi32>) {
    %1 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %s = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<2xi32>) -> tensor<2xi32>
    %2 = stablehlo.partition_id : tensor<ui32>
    %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<i32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %5 = stablehlo.add %1, %4 : tensor<2xi32>
    sdy.return %5 : tensor<2xi32>
  } : (tensor<8xi32>) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}

func.func @sums(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
