// RUN: not shard-opt %s --split-input-file --sdy-insert-explicit-reshards=enable-full-version=true 2>&1 | FileCheck %s

sdy.mesh @device = <[], device_ids=[0]>

// CHECK: error: function argument 0 cannot have a single-device (maximal) sharding attribute, <@device, []>
func.func @argument(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@device, []>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @zero = <[], device_ids=[0]>
sdy.mesh @one = <[], device_ids=[1]>

func.func @two_devices(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: error: 'stablehlo.custom_call' has conflicting single-device result shardings, on @zero and on @one
  %0:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@zero, []>, <@one, []>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @no_result(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) {
  // CHECK: error: 'stablehlo.custom_call' cannot be resharded: an operand is unreduced, but the op has no result that can be
  stablehlo.custom_call @f(%a) {has_side_effect = true} : (tensor<8xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @other = <["x"=2, "y"=2]>

func.func @other_mesh(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) -> tensor<8xf32> {
  // CHECK: error: 'stablehlo.negate' cannot be resharded: a tensor unreduced along mesh axes cannot be resharded from <@mesh, [{}], unreduced={"x"}> to <@other, [{"y"}]>
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@other, [{"y"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @two_ways(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: error: 'stablehlo.custom_call' cannot be resharded: result 1 is unreduced along "y", but result 0 is not unreduced
  %0:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}], unreduced={"y"}>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
