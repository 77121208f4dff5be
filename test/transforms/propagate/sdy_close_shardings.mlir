// RUN: shard-opt %s --sdy-close-shardings | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func.func @everywhere
// CHECK-SAME: (%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p2, {}], unreduced={"y"}>})
// CHECK-SAME: -> (tensor<8x8xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
// CHECK-NEXT: sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}], unreduced={"y"}>
// CHECK-NEXT: stablehlo.negate %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"y"}>]>}
func.func @everywhere(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p2, {?}p1], unreduced={"y"}>})
    -> (tensor<8x8xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}], replicated={"x"}>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x", ?}, {}], unreduced={"y"}> : tensor<8x8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {}], replicated={"x"}, unreduced={"y"}>]>} : tensor<8x8xf32>
  %2 = sdy.all_reduce {"y"} %1 out_sharding=<@mesh, [{?}, {?}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
