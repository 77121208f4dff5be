// RUN: shard-opt %s --sdy-resolve-single-device-sharding --split-input-file --verify-diagnostics
// RUN: not shard-opt %s --sdy-resolve-single-device-sharding='replica-count=2 partition-count=2' --split-input-file 2>&1 | FileCheck %s

// CHECK: error: 2 replicas of 2 partitions cannot be identified by one id: replica-count or partition-count must be 1

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @zero = <[], device_ids=[0]>
sdy.mesh @one = <[], device_ids=[1]>

func.func @two_devices(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-error @+1 {{'stablehlo.custom_call' op has results on the devices 0 and 1: all results must be on one device}}
  %0:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@zero, []>, <@one, []>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @zero = <[], device_ids=[0]>

func.func @one_device_and_several(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-error @+1 {{'stablehlo.custom_call' op has a result on device 0 and another one sharded as <@mesh, [{"x"}]>: all results must be on this device, or replicated}}
  %0:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@zero, []>, <@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @zero = <[], device_ids=[0]>

func.func @no_zero(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'stablehlo.negate' op cannot run on a single device: the other devices need a zero of type tensor<?xf32>}}
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@zero, []>]>} : tensor<?xf32>
  return %0 : tensor<?xf32>
}
