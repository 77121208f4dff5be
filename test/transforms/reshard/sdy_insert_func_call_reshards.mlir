// RUN: shard-opt %s --sdy-insert-func-call-reshards | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  // Results of the function are resharded to the shardings of the call; equal shardings stay.
  // CHECK-NEXT: %[[PAIR:.*]]:2 = call @pair(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{?}]>]>}
  // CHECK-NEXT: %[[FIRST:.*]] = sdy.reshard %[[PAIR]]#0 <@mesh, [{"y"}]>
  // CHECK-NEXT: stablehlo.add %[[FIRST]], %[[PAIR]]#1
  %0:2 = call @pair(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>, <@mesh, [{}]>]>} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1 = stablehlo.add %0#0, %0#1 : tensor<4xf32>
  // Results of a call without shardings are replicated.
  // CHECK-NEXT: %[[PAIR:.*]]:2 = call @pair(%{{.*}}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{?}]>]>}
  // CHECK-NEXT: %[[FIRST:.*]] = sdy.reshard %[[PAIR]]#0 <@mesh, [{}]>
  // CHECK-NEXT: stablehlo.add %[[FIRST]], %[[PAIR]]#1
  %2:2 = call @pair(%1) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %3 = stablehlo.add %2#0, %2#1 : tensor<4xf32>
  // Results of a function without shardings are replicated.
  // CHECK-NEXT: %[[PLAIN:.*]] = call @plain(%{{.*}}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}
  // CHECK-NEXT: %[[SHARDED:.*]] = sdy.reshard %[[PLAIN]] <@mesh, [{"x"}]>
  %4 = call @plain(%3) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: call @plain(%[[SHARDED]]) : (tensor<4xf32>)
  %5 = call @plain(%4) : (tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

func.func private @pair(%a: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<4xf32>) {
  return %a, %a : tensor<4xf32>, tensor<4xf32>
}

func.func private @plain(%a: tensor<4xf32>) -> tensor<4xf32>
