// RUN: shard-opt %s --sdy-propagate-sharding-from-func-to-call | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @single = <[], device_ids=[0]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @half_said(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>, <@mesh, [{"x"}, {}]>]>}
// CHECK-NEXT: call @half_said(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>, <@mesh, [{?}, {?}]>]>}
// CHECK-NEXT: call @silent(%arg0) : (
// CHECK-NEXT: call @on_one_device(%arg0) : (
func.func @main(%a: tensor<8x8xf32>) {
  %0:2 = call @half_said(%a) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  // A call with shardings keeps them, even if they are open and without axes.
  %1:2 = call @half_said(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>, <@mesh, [{?}, {?}]>]>} : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %2 = call @silent(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = call @on_one_device(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

func.func private @half_said(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  return %a, %a : tensor<8x8xf32>, tensor<8x8xf32>
}

func.func private @silent(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  return %a : tensor<8x8xf32>
}

func.func private @on_one_device(%a: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@single, []>}) {
  return %a : tensor<8x8xf32>
}
