// RUN: shard-opt %s --sdy-remove-sub-axes-in-input-output-shardings | FileCheck %s

sdy.mesh @mesh = <["x"=8, "y"=4]>

// An open dimension ends before its first sub-axis, and a closed dimension keeps the user's sharding.
// CHECK: func.func @main(
// CHECK-SAME: %arg0: tensor<64x64xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}p1]>}
// CHECK-SAME: %arg1: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "y"}, {}], replicated={"x":(2)4}>}
// CHECK-SAME: -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", ?}]>})
// CHECK-NEXT: stablehlo.add
// CHECK-SAME: [{"y", "x":(1)2, ?}, {?}]
func.func @main(
    %a: tensor<64x64xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{"y", "x":(1)2, ?}, {"x":(2)4, ?}p1]>},
    %b: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "y"}, {}], replicated={"x":(2)4}>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}, {"y", ?}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "x":(1)2, ?}, {?}]>]>} : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// Other functions are not visible from outside.
// CHECK: func.func private @other(%arg0: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}]>})
func.func private @other(%a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}]>}) {
  return
}
