// RUN: shard-opt %s --shard-reshard | FileCheck %s
// RUN: shard-opt %s --shard-reshard='planner=shardy' | FileCheck %s --check-prefix=SHARDY
// RUN: shard-opt %s --shard-reshard='direct-exchange=true' | FileCheck %s --check-prefix=DIRECT

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>

func.func private @callee(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  return %a : tensor<8x8xf32>
}

// The constraint is the first of two consecutive changes; the last one is planned.
// CHECK-LABEL: func @constraint
// CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{}, {"z"}] %arg0
// CHECK-NEXT: %[[P:.*]] = sdy.collective_permute %[[S]] out_sharding=<@mesh, [{"y", "z"}, {"x"}]>
// CHECK-NEXT: %[[G:.*]] = sdy.all_gather [{"z"}, {}] %[[P]]
// CHECK-NEXT: return %[[G]]
// SHARDY-LABEL: func @constraint
// SHARDY-NEXT: %[[P:.*]] = sdy.collective_permute %arg0
// SHARDY-NEXT: %[[A:.*]] = sdy.all_to_all [{"x"}: 0->1] %[[P]]
// SHARDY-NEXT: return %[[A]]
// DIRECT-LABEL: func @constraint
// DIRECT-NEXT: %[[D:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}, {"x"}]> {mlir_shard.direct_exchange}
// DIRECT-NEXT: return %[[D]]
func.func @constraint(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{}, {"z"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func @call_and_contraction
// CHECK-NEXT: %[[DOT:.*]] = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
// CHECK-NEXT: %[[SUM:.*]] = sdy.all_reduce {"y"} %[[DOT]] out_sharding=<@mesh, [{"x"}, {}]>
// CHECK-NEXT: %[[CALL:.*]] = call @callee(%[[SUM]]) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
// CHECK-NEXT: %[[ALL:.*]] = sdy.all_gather [{"x"}, {"y"}] %[[CALL]] out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: return %[[ALL]]
func.func @call_and_contraction(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = func.call @callee(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
