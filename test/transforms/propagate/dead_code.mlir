// RUN: shard-opt %s --split-input-file --sdy-basic-propagate | FileCheck %s
// RUN: shard-opt %s --split-input-file --sdy-user-priority-propagate | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-propagate | FileCheck %s

// Unused operations of any dialect are erased before they tie shardings.
sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @chain
// CHECK-SAME: %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {{{\??}}}]>}
// CHECK-SAME: %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{{{\??}}}, {"y"}]>}
// CHECK-NEXT: return
func.func @chain(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
                 %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) {
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %2 = arith.negf %1 : tensor<8x8xf32>
  %3 = sdy.propagation_barrier %2 allowed_direction=FORWARD : tensor<8x8xf32>
  %4 = sdy.constant dense<1.0> : tensor<8x8xf32>
  return
}

// A computation has the effects of its operations.
// CHECK-LABEL: func.func @computations
// CHECK-SAME: (%arg0: tensor<8xf32>, %arg1: tensor<8xf32>
// CHECK-NEXT: sdy.manual_computation(%arg1)
// CHECK-NEXT:   stablehlo.custom_call @log(%arg2)
// CHECK-NOT: sdy.manual_computation
// CHECK-NOT: sdy.named_computation
func.func @computations(%a: tensor<8xf32>, %b: tensor<8xf32>) {
  %0 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"x", ?}]>] out_shardings=[<@mesh, [{"x", ?}]>] manual_axes={"x"} (%c: tensor<4xf32>) {
    stablehlo.custom_call @log(%c) {has_side_effect = true} : (tensor<4xf32>) -> ()
    sdy.return %c : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}]>] out_shardings=[<@mesh, [{"x", ?}]>] manual_axes={"x"} (%c: tensor<4xf32>) {
    %3 = sdy.named_computation<"inner">(%c) (%d: tensor<4xf32>) {
      %4 = stablehlo.negate %d : tensor<4xf32>
      sdy.return %4 : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %3 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.negate %1 : tensor<8xf32>
  return
}

// -----

// An unused constraint still shards its operand; an effect, a group and a function's result are uses.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @alive
// CHECK-SAME: %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"{{(, \?)?}}}]>}
// CHECK: %[[SUM:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"{{(, \?)?}}}]>]>}
// CHECK-NEXT: sdy.sharding_constraint %[[SUM]]
// CHECK-NEXT: stablehlo.negate %[[SUM]]
// CHECK-NEXT: stablehlo.custom_call @log
func.func @alive(%a: tensor<8xf32>, %b: tensor<8xf32>) {
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
  %2 = stablehlo.negate %0 : tensor<8xf32>
  stablehlo.custom_call @log(%2) {has_side_effect = true} : (tensor<8xf32>) -> ()
  return
}
