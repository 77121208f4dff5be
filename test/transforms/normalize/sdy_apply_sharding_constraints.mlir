// RUN: shard-opt %s --sdy-apply-sharding-constraints | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @applied
// CHECK-SAME: (%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
// CHECK-NEXT: sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]>
// CHECK-NEXT: arith.negf %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
func.func @applied(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = arith.negf %a : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  %3 = arith.negf %1 : tensor<8x8xf32>
  return %0, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}

// An open constraint leaves its operand to propagation.
// CHECK-LABEL: func.func @open(%arg0: tensor<8x8xf32>)
func.func @open(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// An existing sharding stays.
// CHECK-LABEL: func.func @sharded(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>})
func.func @sharded(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Different constraints of one value are not applied.
// CHECK-LABEL: func.func @differing(%arg0: tensor<8x8xf32>)
func.func @differing(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %a <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// A manual computation constrains its operands, except by open shardings; different constraints are not applied.
// CHECK-LABEL: func.func @manual
// CHECK-SAME: (%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>)
func.func @manual(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.manual_computation(%a, %b, %c) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {?}]>, <@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%d: tensor<4x8xf32>, %e: tensor<4x8xf32>, %f: tensor<4x8xf32>) {
    sdy.return %d : tensor<4x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %c <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// After an edge, the constraint replaces the value in its uses; only unreduced axes are added to the edge.
// CHECK-LABEL: func.func @edge
// CHECK: %[[E:.*]] = sdy.data_flow_edge {{.*}} sharding=<@mesh, [{?}, {?}], unreduced=max{"y"}>
// CHECK-NEXT: %[[C:.*]] = sdy.sharding_constraint %[[E]] <@mesh, [{"x"}, {}], unreduced=max{"y"}>
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[C]]
// CHECK-NEXT: return %[[N]], %[[C]]
func.func @edge(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.optimization_barrier %a : tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  %2 = arith.negf %1 : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {}], unreduced=max{"y"}> : tensor<8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}

// A manual computation gets its own constraint after an edge.
// CHECK-LABEL: func.func @edge_to_manual
// CHECK: %[[E:.*]] = sdy.data_flow_edge %{{[^ ]*}} : tensor<8x8xf32>
// CHECK-NEXT: %[[C:.*]] = sdy.sharding_constraint %[[E]] <@mesh, [{"y"}, {}]>
// CHECK-NEXT: arith.negf %[[C]]
// CHECK-NEXT: sdy.manual_computation(%[[C]])
func.func @edge_to_manual(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.optimization_barrier %a : tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  %2 = arith.negf %1 : tensor<8x8xf32>
  %3 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"y"} (%b: tensor<4x8xf32>) {
    sdy.return %b : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}

// The constraint of an argument of a named computation becomes its input sharding; the other inputs are open.
// CHECK-LABEL: func.func @named
// CHECK: sdy.named_computation<"f">({{.*}}) in_shardings=[<@mesh, [{?}]>, <@mesh, [{"x"}]>]
func.func @named(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"f">(%a, %b) (%c: tensor<8xf32>, %d: tensor<8xf32>) {
    %1 = sdy.sharding_constraint %d <@mesh, [{"x"}]> : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Uses after a chain of constraints use the end of the chain; uses before it and the return do not.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
// CHECK-NEXT: arith.negf %arg0
// CHECK-NEXT: %[[C:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]>
// CHECK-NEXT: %[[D:.*]] = sdy.sharding_constraint %[[C]] <@mesh, [{}, {"y"}]>
// CHECK-NEXT: math.exp %[[D]]
// CHECK-NEXT: return {{.*}}, {{.*}}, %[[D]], %arg0
func.func @chain(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = arith.negf %a : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %3 = math.exp %a : tensor<8x8xf32>
  return %0, %3, %2, %a : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Constraints with another use between them are not a chain.
// CHECK-LABEL: func.func @used_between
// CHECK: math.exp %arg0
func.func @used_between(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %2 = math.exp %a : tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
