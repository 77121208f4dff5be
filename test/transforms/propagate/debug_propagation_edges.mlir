// The steps in which axes propagated through each operation, numbered over all passes, phases and priorities.
//
// RUN: shard-opt %s --split-input-file --sdy-add-data-flow-edges --sdy-apply-sharding-constraints=debug-propagation-edge-sharding=true --sdy-user-priority-propagate=debug-propagation-edge-sharding=true --sdy-sink-data-flow-edges=sink-debug-propagation-edge-sharding=true | FileCheck %s
//
// The record does not change shardings.
//
// RUN: shard-opt %s --split-input-file --sdy-add-data-flow-edges --sdy-user-priority-propagate > %t.off
// RUN: shard-opt %s --split-input-file --sdy-add-data-flow-edges --sdy-user-priority-propagate=debug-propagation-edge-sharding=true --sdy-remove-propagation-debug-info > %t.on
// RUN: diff %t.off %t.on

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// CHECK-LABEL: @later_priorities
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"y" = operand-0 -> [result-0]}]}, {step-3 = [{"x" = operand-0 -> [result-0]}]}]>,
// CHECK-NEXT: stablehlo.add %arg0, %arg1 {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"y" = operand-1 -> [operand-0, result-0]}]}, {step-2 = [{"x" = operand-0 -> [operand-1, result-0]}]}]>,
func.func @later_priorities(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}p1]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// The step numbers of propagation follow those of the constraints that were applied before.
// CHECK-LABEL: @after_constraints
// CHECK-SAME: {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"z" = operand-0 -> [result-0]}]}]>,
// CHECK-NEXT: stablehlo.negate {{.*}}<[{step-2 = [{"z" = result-0 -> [operand-0]}]}]>,
// CHECK-NEXT: sdy.sharding_constraint {{.*}}<[{step-0 = [{"z" = result-0 -> [operand-0]}]}]>} :
// CHECK-NEXT: stablehlo.abs {{.*}}<[{step-3 = [{"z" = operand-0 -> [result-0]}]}]>,
func.func @after_constraints(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"z"}]> : tensor<8xf32>
  %2 = stablehlo.abs %0 : tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// The negation propagates first, because it is elementwise and the product is not.
// CHECK-LABEL: @phases_of_ops
// CHECK:      stablehlo.dot_general {{.*}}<[{step-2 = [{"x" = operand-0 -> [result-0]}, {"y" = operand-1 -> [result-0]}]}]>,
// CHECK-NEXT: stablehlo.negate {{.*}}<[{step-0 = [{"y" = operand-0 -> [result-0]}]}]>,
func.func @phases_of_ops(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>}, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", ?}]>}) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.negate %arg1 : tensor<4x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<4x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// CHECK-LABEL: @computations
// CHECK-SAME: <[{step-0 = [{"x" = operand-0 -> [result-0]}]}, {step-4 = [{"y" = operand-0 -> [result-0]}]}]>,
// CHECK:      stablehlo.abs {{.*}}<[{step-2 = [{"y" = operand-0 -> [result-0]}]}]>,
// CHECK:      } {sdy.block_arg_propagation_edges = [#sdy.propagation_edges<[{step-1 = [{"x" = result-0 -> [operand-0]}, {"y" = result-0 -> [operand-0]}]}]>],
// CHECK-SAME: sdy.result_propagation_edges = [#sdy.propagation_edges<[{step-3 = [{"y" = operand-0 -> [result-0]}]}]>]} :
func.func @computations(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y", ?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={"x"} (%arg1: tensor<4x8xf32>) {
    %1 = stablehlo.abs %arg1 : tensor<4x8xf32>
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>

// A sharding that a group takes from a member is not a step.
// CHECK-LABEL: @a_group
// CHECK-SAME: <[{step-2 = [{"x" = operand-0 -> [result-0]}]}]>,
// CHECK:      stablehlo.negate {{.*}}<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>,
// CHECK:      stablehlo.abs {{.*}}<[{step-1 = [{"x" = operand-0 -> [result-0]}]}]>,
func.func @a_group(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  sdy.sharding_group %0 group_id = 0 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id = 0 : tensor<8xf32>
  %1 = stablehlo.abs %arg1 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
