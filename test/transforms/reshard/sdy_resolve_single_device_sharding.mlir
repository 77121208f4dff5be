// RUN: shard-opt %s --sdy-resolve-single-device-sharding | FileCheck %s
// RUN: shard-opt %s --sdy-resolve-single-device-sharding='replica-count=4 partition-count=1' | FileCheck %s --check-prefix=REPLICAS
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-insert-explicit-reshards,sdy-resolve-single-device-sharding))' | FileCheck %s --check-prefix=BOTH

// Each operation has a condition and an all-reduce; the reshards to and from the device are erased.
sdy.mesh @device = <[], device_ids=[3]>
sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func @both_operands_come_with_one_reshard
// CHECK-NEXT: %[[ID:.*]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %[[NUMBER:.*]] = stablehlo.convert %[[ID]] : (tensor<ui32>) -> tensor<i64>
// CHECK-NEXT: %[[DEVICE:.*]] = stablehlo.constant dense<3> : tensor<i64>
// CHECK-NEXT: %[[IS_IT:.*]] = stablehlo.compare EQ, %[[NUMBER]], %[[DEVICE]]
// CHECK-NEXT: %[[IF:.*]] = "stablehlo.if"(%[[IS_IT]]) ({
// CHECK-NEXT:   %[[SUM:.*]] = stablehlo.add %arg0, %arg0 : tensor<8xf32>
// CHECK-NEXT:   stablehlo.return %[[SUM]] : tensor<8xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT:   %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK-NEXT:   stablehlo.return %[[ZERO]] : tensor<8xf32>
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<8xf32>
// CHECK-NEXT: %[[ALL:.*]] = sdy.all_reduce {"x", "y"} %[[IF]] out_sharding=<@mesh, [{}]>
// CHECK-NEXT: return %[[ALL]]

// REPLICAS-LABEL: func @both_operands_come_with_one_reshard
// REPLICAS-NEXT: stablehlo.replica_id
func.func @both_operands_come_with_one_reshard(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = sdy.reshard %a <@device, []> : tensor<8xf32>
  %1 = stablehlo.add %0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// A result that is not a tensor is not summed. A reshard with other uses stays, and so does one to another sharding.
// CHECK-LABEL: func @several_results
// CHECK: %[[ARRIVED:.*]] = sdy.reshard %arg0 <@device, []>
// CHECK: %[[IF:.*]]:3 = "stablehlo.if"
// CHECK-NEXT: %[[RESULTS:.*]]:3 = stablehlo.custom_call @f(%arg0) :
// CHECK-NEXT: stablehlo.return %[[RESULTS]]#0, %[[RESULTS]]#1, %[[RESULTS]]#2
// CHECK: stablehlo.constant dense<0> : tensor<4xui8>
// CHECK-NEXT: stablehlo.constant dense<false> : tensor<i1>
// CHECK-NEXT: stablehlo.create_token
// CHECK: %[[FIRST:.*]] = sdy.all_reduce {"x", "y"} %[[IF]]#0 out_sharding=<@mesh, [{}]> : tensor<4xui8>
// CHECK-NEXT: sdy.all_reduce {"x", "y"} %[[IF]]#1 out_sharding=<@mesh, []> : tensor<i1>
// CHECK-NEXT: %[[SHARDED:.*]] = sdy.reshard %[[FIRST]] <@mesh, [{"x"}]>
// CHECK-NEXT: return %[[ARRIVED]], %[[SHARDED]], %[[IF]]#2
func.func @several_results(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xui8>, !stablehlo.token) {
  %0 = sdy.reshard %a <@device, []> : tensor<8xf32>
  %1:3 = stablehlo.custom_call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>, <@mesh, []>, <@mesh, []>]>} : (tensor<8xf32>) -> (tensor<4xui8>, tensor<i1>, !stablehlo.token)
  %2 = sdy.reshard %1#0 <@mesh, [{"x"}]> : tensor<4xui8>
  return %0, %2, %1#2 : tensor<8xf32>, tensor<4xui8>, !stablehlo.token
}

// CHECK-LABEL: func @inside_of_another
// CHECK: "stablehlo.if"
// CHECK-NEXT: "stablehlo.case"
// CHECK: "stablehlo.if"
// CHECK-NEXT: stablehlo.negate %arg0 : tensor<8xf32>

// BOTH-LABEL: func @inside_of_another
// BOTH-NOT: @device
func.func @inside_of_another(%a: tensor<8xf32>, %i: tensor<i32>) -> tensor<8xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func @only_a_token
// CHECK-NEXT: stablehlo.create_token
// CHECK-NEXT: return
func.func @only_a_token() -> !stablehlo.token {
  %0 = stablehlo.create_token {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : !stablehlo.token
  return %0 : !stablehlo.token
}
