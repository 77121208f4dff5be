// RUN: shard-opt %s --split-input-file --sdy-basic-propagate | FileCheck %s

// Propagation through the edges of ops with regions, and of functions.

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A value that a loop carries has the same sharding before, in and after the loop.
// CHECK-LABEL: func.func @scf_for
// CHECK-SAME: -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>})
// CHECK: math.exp {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}
// CHECK: sdy.data_flow_edge {{.*}} sharding=<@mesh, [{"x", ?}]>
func.func @scf_for(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %n: index) -> tensor<8xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = scf.for %i = %0 to %n step %1 iter_args(%b = %a) -> tensor<8xf32> {
    %4 = math.exp %b : tensor<8xf32>
    scf.yield %4 : tensor<8xf32>
  }
  %3 = sdy.data_flow_edge %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// The operands of the condition become the results; the arguments of the first region have their own edge.
// CHECK-LABEL: func.func @scf_while
// CHECK-SAME: %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}]>}
// CHECK: sdy.data_flow_edge {{.*}} sharding=<@mesh, [{"y", ?}]>
// CHECK: math.exp {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", ?}]>]>}
func.func @scf_while(%a: tensor<8xf32>, %c: i1) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = scf.while (%b = %a) : (tensor<8xf32>) -> tensor<8xf32> {
    %2 = sdy.data_flow_edge %b : tensor<8xf32>
    scf.condition(%c) %2 : tensor<8xf32>
  } do {
  ^bb0(%d: tensor<8xf32>):
    %3 = math.exp %d : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  }
  %1 = sdy.data_flow_edge %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @scf_if
// CHECK-SAME: %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}
func.func @scf_if(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %0 = scf.if %c -> tensor<8xf32> {
    scf.yield %a : tensor<8xf32>
  } else {
    scf.yield %b : tensor<8xf32>
  }
  %1 = sdy.data_flow_edge %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Without an edge, no sharding propagates.
// CHECK-LABEL: func.func @no_edge
// CHECK-SAME: -> tensor<8xf32>
func.func @no_edge(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %c: i1) -> tensor<8xf32> {
  %0 = scf.if %c -> tensor<8xf32> {
    scf.yield %a : tensor<8xf32>
  } else {
    scf.yield %a : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// In a manual computation, free axes propagate, and manual axes stay outside.
// CHECK-LABEL: func.func @manual
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}]>})
// CHECK: sdy.data_flow_edge {{.*}} sharding=<@mesh, [{?}, {"y", ?}]>
// CHECK: stablehlo.negate {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"y", ?}]>]>}
// CHECK: sdy.data_flow_edge {{.*}} sharding=<@mesh, [{"x", ?}, {"y", ?}]>
func.func @manual(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %b sharding=<@mesh, [{?}, {?}]> : tensor<4x8xf32>
    %3 = stablehlo.negate %2 : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x", ?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Shardings propagate from a call into its function and back.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>})
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = call @callee(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.func_data_flow_edge %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @callee
// CHECK-NEXT: sdy.func_data_flow_edge %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}
// CHECK-NEXT: stablehlo.negate {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}
func.func private @callee(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.func_data_flow_edge %a : tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// One value is passed twice. The second argument takes the axes of its result before the first result propagates to the
// value, because the edge of a block argument is the last node that a change visits.
// CHECK-LABEL: func.func @twice
// CHECK: sdy.named_computation<"f">(%0, %0)
// CHECK-NEXT: sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {"b", ?}]>
// CHECK-NEXT: sdy.data_flow_edge %arg2 sharding=<@mesh, [{?}, {"a", ?}]>
sdy.mesh @mesh = <["a"=2, "b"=3]>
func.func @twice(%x: tensor<6x6xf32>) -> (tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b", ?}]>}) {
  %0 = stablehlo.custom_call @source(%x) : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %1:2 = sdy.named_computation<"f">(%0, %0) out_shardings=[<@mesh, [{?}, {?}]>, <@mesh, [{?}, {"a", ?}]>] (%a: tensor<6x6xf32>, %b: tensor<6x6xf32>) {
    %4 = sdy.data_flow_edge %a : tensor<6x6xf32>
    %5 = sdy.data_flow_edge %b : tensor<6x6xf32>
    sdy.return %4, %5 : tensor<6x6xf32>, tensor<6x6xf32>
  } : (tensor<6x6xf32>, tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>)
  %2 = sdy.data_flow_edge %1#0 sharding=<@mesh, [{?}, {?}]> : tensor<6x6xf32>
  %3 = sdy.data_flow_edge %1#1 sharding=<@mesh, [{?}, {"a", ?}]> : tensor<6x6xf32>
  return %2 : tensor<6x6xf32>
}
