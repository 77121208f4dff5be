// Named origins of shardings, in attributes of everything that has a sharding.
//
// RUN: shard-opt %s --split-input-file --sdy-add-data-flow-edges --sdy-user-priority-propagate=debug-sharding-origins=true --sdy-sink-data-flow-edges=sink-debug-sharding-origins=true | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// An origin is recorded from the start, whatever the priority of its dimension.
// CHECK-LABEL: @later_priorities
// CHECK-SAME: sdy.sharding_origins = {x = "self"}}, %arg1
// CHECK-SAME: sdy.sharding_origins = {y = "self"}}) ->
// CHECK-SAME: sdy.sharding_origins = {y = "input: 1"}}) {
// CHECK-NEXT: stablehlo.add {{.*}} sdy.sharding_origins = [{y = "input: 1"}]} :
// CHECK-NEXT: stablehlo.negate {{.*}} sdy.sharding_origins = [{y = "input: 1"}]} :
func.func @later_priorities(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// An op with its own sharding is an origin, with one name for all of its results; sub-axes are distinguished.
// CHECK-LABEL: @shardings_of_ops
// CHECK-SAME: sdy.sharding_origins = {"z:(1)2" = "op_0"}}, %arg1
// CHECK-SAME: sdy.sharding_origins = {"z:(1)2" = "op_0"}}) ->
// CHECK-SAME: sdy.sharding_origins = {y = "op_1"}},
// CHECK-SAME: sdy.sharding_origins = {x = "op_1"}}) {
// CHECK-NEXT: stablehlo.add {{.*}} sdy.sharding_origin_name = "op_0", sdy.sharding_origins = [{"z:(1)2" = "self"}]} :
// CHECK-NEXT: @two(%0) {{.*}} sdy.sharding_origin_name = "op_1", sdy.sharding_origins = [{y = "self"}, {x = "self"}]} :
func.func @shardings_of_ops(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>) {
  %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z":(1)2, ?}, {?}]>]>} : tensor<8x8xf32>
  %1:2 = stablehlo.custom_call @two(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"y", ?}]>, <@mesh, [{"x", ?}]>]>} : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>)
  return %1#0, %1#1 : tensor<8x8xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// An axis that a group takes from a member has the origin that it has there. Both results are one value.
// CHECK-LABEL: @a_group(
// CHECK-SAME: sdy.sharding_origins = {x = "self"}}, %arg1
// CHECK-SAME: sdy.sharding_origins = {x = "input: 0"}}) -> (
// CHECK-SAME: sdy.sharding_origins = {x = "input: 0"}}, tensor<8xf32>
// CHECK-SAME: sdy.sharding_origins = {x = "input: 0"}}) {
// CHECK:      stablehlo.abs {{.*}} sdy.sharding_origins = [{x = "input: 0"}]} :
func.func @a_group(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  sdy.sharding_group %0 group_id = 0 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id = 0 : tensor<8xf32>
  %1 = stablehlo.abs %arg1 : tensor<8xf32>
  return %1, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// The constraints that keep members of a group apart are not origins, because they add no axes.
// CHECK-LABEL: @a_group_that_disagrees
// CHECK-SAME: sdy.sharding_origins = {x = "self"}}, %arg1
// CHECK-SAME: sdy.sharding_origins = {y = "self"}})
// CHECK-NEXT: sdy.sharding_constraint %arg1 {{.*}}, sdy.sharding_origins = {y = "input: 1"}} :
// CHECK-NEXT: sdy.sharding_constraint %arg0 {{.*}}, sdy.sharding_origins = {y = "input: 1"}} :
func.func @a_group_that_disagrees(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}]>}) -> tensor<8xf32> {
  sdy.sharding_group %arg0 group_id = 0 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id = 0 : tensor<8xf32>
  %1 = stablehlo.abs %arg1 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// CHECK-LABEL: @computations
// CHECK-SAME: sdy.sharding_origins = {x = "mc_0_input: 0", y = "mc_0_input: 0"}}) ->
// CHECK-SAME: sdy.sharding_origins = {x = "mc_0_output: 0", y = "mc_0_input: 0"}}) {
// CHECK:      stablehlo.negate {{.*}} sdy.sharding_origins = [{x = "mc_0_input: 0", y = "mc_0_input: 0"}]} :
// CHECK:      } {sdy.block_arg_sharding_origins = [{x = "mc_0_input: 0", y = "mc_0_input: 0"}],
// CHECK-SAME: sdy.result_sharding_origins = [{x = "mc_0_input: 0", y = "mc_0_input: 0"}]} :
// CHECK:      stablehlo.abs {{.*}} sdy.sharding_origins = [{y = "mc_0_input: 0"}]} :
// CHECK:      } {sdy.block_arg_sharding_origins = [{x = "self", y = "self"}],
// CHECK-SAME: sdy.result_sharding_origins = [{x = "self", y = "mc_0_input: 0"}], sdy.sharding_origin_name = "mc_0"} :
func.func @computations(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.named_computation<"inner">(%arg0) (%arg1: tensor<8x8xf32>) {
    %2 = stablehlo.negate %arg1 : tensor<8x8xf32>
    sdy.return %2 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y", ?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={"x"} (%arg1: tensor<4x8xf32>) {
    %2 = stablehlo.abs %arg1 : tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// CHECK-LABEL: @a_loop
// CHECK-SAME: sdy.sharding_origins = {x = "output: 0"}}, %arg1
// CHECK-SAME: sdy.sharding_origins = {x = "self"}}) {
// CHECK-NEXT: stablehlo.while
// CHECK-SAME: sdy.result_sharding_origins = [{x = "output: 0"}],
// CHECK:      stablehlo.negate {{.*}} sdy.sharding_origins = [{x = "output: 0"}]} :
func.func @a_loop(%arg0: tensor<8xf32>, %arg1: tensor<i32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}) {
  %0:2 = stablehlo.while(%a = %arg0, %i = %arg1) : tensor<8xf32>, tensor<i32>
    cond {
    %1 = stablehlo.compare LT, %i, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.negate %a : tensor<8xf32>
    stablehlo.return %1, %i : tensor<8xf32>, tensor<i32>
  }
  return %0#0 : tensor<8xf32>
}
