// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4, "z"=8]>
sdy.mesh @device = <[], device_ids=[0]>

// CHECK-LABEL: func @arguments_and_results
// CHECK-SAME: %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}
// CHECK-SAME: %arg1: tensor<8x8xf32> {jax.name = "b", sdy.sharding = #sdy.sharding<@mesh, [{?}, {"z", ?}]>}
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}p1, {?}p0]>})
func.func @arguments_and_results(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
    %b: tensor<8x8xf32> {jax.name = "b", sdy.sharding = #sdy.sharding<@mesh, [{?}, {"z", ?}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}p1, {?}p0]>}) {
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func @on_operations
func.func @on_operations(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  // CHECK: sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z":(1)2, "x"}, {"z":(4)2}]>]>
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z":(1)2, "x"}, {"z":(4)2}]>]>} : tensor<8x8xf32>
  // Sub-axes in minor to major order do not merge.
  // CHECK: <@mesh, [{"z":(2)4, "z":(1)2}, {}]>
  %1 = arith.addf %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z":(2)4, "z":(1)2}, {}]>]>} : tensor<8x8xf32>
  // CHECK: <@mesh, [{}, {}], replicated={"x", "z":(2)2}, unreduced={"y"}>
  %2 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"y"}, replicated={"x", "z":(2)2}>]>} : tensor<8x8xf32>
  // CHECK: <@mesh, [{?}, {}], unreduced=max{"y":(2)2, "z"}>
  %3 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {}], unreduced=max{"y":(2)2, "z"}>]>} : tensor<8x8xf32>
  // CHECK: #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <mesh<["a"=2, "b"=2], device_ids=[1, 0, 3, 2]>, [{"b"}, {"a"}]>]>
  %4:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <mesh<["a"=2, "b"=2], device_ids=[1, 0, 3, 2]>, [{"b"}, {"a"}]>]>} %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
  // CHECK: return {sdy.sharding = #sdy.sharding_per_value<[]>}
  return {sdy.sharding = #sdy.sharding_per_value<[]>}
}

// Shards may be uneven, and a dimension may be dynamic.
// CHECK-LABEL: func private @sizes
// CHECK-SAME: tensor<3x?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"z"}]>}
// CHECK-SAME: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, [], replicated={"y"}>}
// CHECK-SAME: memref<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}
func.func private @sizes(
    tensor<3x?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"z"}]>},
    tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, [], replicated={"y"}>},
    memref<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})

// A value that is not a tensor, an op without results, and a tuple of one tensor.
// CHECK-LABEL: func @other_values
// CHECK-SAME: !stablehlo.token {sdy.sharding = #sdy.sharding<@mesh, []>}
func.func @other_values(%t: !stablehlo.token {sdy.sharding = #sdy.sharding<@mesh, []>}, %a: tensor<8xf32>) {
  // CHECK: #sdy.sharding_per_value<[<@device, []>]>
  stablehlo.custom_call @effect(%t) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (!stablehlo.token) -> ()
  // CHECK: #sdy.sharding_per_value<[<@mesh, []>]>
  stablehlo.custom_call @effect(%t) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (!stablehlo.token) -> ()
  // CHECK: #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>
  %0 = stablehlo.custom_call @packed(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tuple<tensor<8xf32>>
  // CHECK: #sdy.sharding_per_value<[<@device, []>]>
  %1 = stablehlo.custom_call @on_one_device(%a) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}
