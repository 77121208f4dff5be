// RUN: shard-opt %s --split-input-file --shard-inline-calls --symbol-dce | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-inline-calls --mlir-print-debuginfo | FileCheck %s --check-prefix=PLACE

// Calls are inlined everywhere, also in loops, whatever a function contains: constraints, regions and groups of sdy.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[FIRST:.*]] = stablehlo.negate %arg0
// CHECK-NEXT: %[[CONSTRAINT:.*]] = sdy.sharding_constraint %[[FIRST]] <@mesh, [{"x"}]>
// CHECK-NEXT: %[[LOOP:.*]]:2 = stablehlo.while(%[[I:.*]] = %arg1, %[[CARRIED:.*]] = %[[CONSTRAINT]])
// CHECK:      do {
// CHECK-NEXT:   %[[SECOND:.*]] = stablehlo.negate %[[CARRIED]]
// CHECK-NEXT:   %[[CONSTRAINED:.*]] = sdy.sharding_constraint %[[SECOND]] <@mesh, [{"x"}]>
// CHECK-NEXT:   %[[MANUAL:.*]] = sdy.manual_computation(%[[CONSTRAINED]])
// CHECK:        stablehlo.return %[[I]], %[[MANUAL]]
// CHECK:      sdy.sharding_group %[[LOOP]]#1 group_id=3
// CHECK-NEXT: return %[[LOOP]]#1
// CHECK-NOT: func.func

// The location of an inlined operation is that in the function, called from the location of the call.
// PLACE-LABEL: func.func @main
// PLACE-NEXT: stablehlo.negate %arg0 : tensor<8xf32> loc(#[[SITE:.*]])
// PLACE: #[[CALLEE:.*]] = loc("{{.*}}":45:8)
// PLACE: #[[CALLER:.*]] = loc("{{.*}}":27:8)
// PLACE: #[[SITE]] = loc(callsite(#[[CALLEE]] at #[[CALLER]]))
func.func @main(%a: tensor<8xf32>, %n: tensor<i1>) -> tensor<8xf32> {
  %0 = call @constrained(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1:2 = stablehlo.while(%i = %n, %c = %0) : tensor<i1>, tensor<8xf32>
  cond {
    stablehlo.return %i : tensor<i1>
  } do {
    %2 = func.call @body(%c) : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %i, %2 : tensor<i1>, tensor<8xf32>
  }
  call @grouped(%1#1) : (tensor<8xf32>) -> ()
  return %1#1 : tensor<8xf32>
}

func.func private @grouped(%a: tensor<8xf32>) {
  sdy.sharding_group %a group_id = 3 : tensor<8xf32>
  return
}

func.func private @constrained(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

func.func private @body(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @constrained(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// The shardings of a function or call become constraints. A function that may have external callers is not changed.
sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[IN:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {?}]>
// CHECK-NEXT: %[[ADD:.*]] = stablehlo.add %[[IN]], %arg1
// CHECK-NEXT: %[[OUT:.*]] = sdy.sharding_constraint %[[ADD]] <@mesh, [{}, {"y"}]>
// CHECK-NEXT: %[[IN:.*]] = sdy.sharding_constraint %[[OUT]] <@mesh, [{"x"}, {?}]>
// CHECK-NEXT: %[[ADD:.*]] = stablehlo.add %[[IN]], %arg1
// CHECK-NEXT: %[[OUT:.*]] = sdy.sharding_constraint %[[ADD]] <@mesh, [{"y"}, {}]>
// CHECK-NEXT: return %[[OUT]]
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = call @f(%a, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = call @f(%0, %b) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @f
// CHECK-SAME: %arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}
// CHECK-NEXT: stablehlo.add %arg0, %arg1
// CHECK-NEXT: return
func.func @f(%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %b: tensor<4x4xf32>)
    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %0 = stablehlo.add %a, %b : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// Named computations are inlined in the same way, nested ones too, except those with edges, used by propagation.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @computations
// CHECK-NEXT: %[[IN:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]>
// CHECK-NEXT: %[[ABS:.*]] = stablehlo.abs %[[IN]]
// CHECK-NEXT: %[[OUT:.*]] = sdy.sharding_constraint %[[ABS]] <@mesh, [{}]>
// CHECK-NEXT: %[[NEGATED:.*]] = stablehlo.negate %[[OUT]]
// CHECK-NEXT: %[[EDGES:.*]] = sdy.named_computation<"edges">(%[[NEGATED]])
func.func @computations(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"outer">(%a) (%b: tensor<8xf32>) {
    %2 = sdy.named_computation<"inner">(%b) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] (%c: tensor<8xf32>) {
      %3 = stablehlo.abs %c : tensor<8xf32>
      sdy.return %3 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %4 = stablehlo.negate %2 : tensor<8xf32>
    sdy.return %4 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.named_computation<"edges">(%0) (%b: tensor<8xf32>) {
    %2 = sdy.data_flow_edge %b : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A call that must not be inlined becomes a named computation, and later a call again.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[FIRST:.*]] = sdy.named_computation<"called">(%arg0) in_shardings=[<@mesh, [{"x"}]>] (%arg1: tensor<8xf32>) {
// CHECK-NEXT:   %[[INNER:.*]] = sdy.named_computation<"never">(%arg1) out_shardings=[<@mesh, [{"x"}]>] (%arg2: tensor<8xf32>) {
// CHECK-NEXT:     sdy.return %arg2
// CHECK-NEXT:   } {no_inline}
// CHECK-NEXT:   sdy.return %[[INNER]]
// CHECK-NEXT: } {no_inline}
// CHECK-NEXT: sdy.sharding_constraint %[[FIRST]] <@mesh, [{"x"}]>
// CHECK-NEXT: sdy.named_computation<"never">
// CHECK-NOT: func.func
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @called(%a) {no_inline} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @called(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

func.func private @called(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = call @never(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @never(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) attributes {no_inline} {
  return %a : tensor<8xf32>
}

// -----

// Calls stay if the function has no body or several blocks, or if its body leads back to the call; their operands and
// results are sharded as the function requires.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[IN:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]>
// CHECK-NEXT: %[[DECLARED:.*]] = call @declared(%[[IN]], %arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: %[[ODD:.*]] = call @odd(%[[DECLARED]])
// CHECK-NEXT: call @blocks(%[[ODD]])
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @declared(%a, %a) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = call @caller(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @blocks(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

func.func private @declared(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<8xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})

func.func private @caller(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @even(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @even(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @odd(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @odd(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @even(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @blocks(%a: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^end
^end:
  return %a : tensor<8xf32>
}
