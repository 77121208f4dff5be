// RUN: shard-opt %s --canonicalize | FileCheck %s

// Without branches, unused operations are erased with all operations that only they use, in regions too.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: %[[SUM:.*]] = scf.for
// CHECK-NEXT: arith.addi
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[SUM]]
func.func @unused(%low: index, %high: index, %step: index) -> index {
  %0 = arith.muli %low, %high : index
  %1 = arith.muli %0, %high : index
  %sum = scf.for %i = %low to %high step %step iter_args(%so_far = %low) -> index {
    %2 = arith.muli %i, %1 : index
    %3 = arith.muli %2, %2 : index
    %next = arith.addi %so_far, %i : index
    scf.yield %next : index
  }
  return %sum : index
}

// A loop has the effects of its operations, those of sdy included, whether or not the body uses their results.
// CHECK-LABEL: func.func @unused_loop
// CHECK-NEXT: return
sdy.mesh @mesh = <["x"=2]>
func.func @unused_loop(%low: index, %high: index, %step: index, %a: tensor<8xf32>) {
  %0 = scf.for %i = %low to %high step %step iter_args(%so_far = %a) -> tensor<8xf32> {
    %1 = sdy.named_computation<"f">(%so_far) (%b: tensor<8xf32>) {
      %3 = stablehlo.negate %b : tensor<8xf32>
      sdy.return %3 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %2 = sdy.reshard %1 <@mesh, [{"x"}]> : tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  }
  return
}

// CHECK-LABEL: func.func @unused_loop_with_effects
// CHECK: sdy.named_computation
// CHECK: stablehlo.custom_call @log
// CHECK: scf.if
// CHECK: sdy.sharding_constraint
func.func @unused_loop_with_effects(%low: index, %high: index, %step: index, %condition: i1, %a: tensor<8xf32>) {
  %0 = scf.for %i = %low to %high step %step iter_args(%so_far = %a) -> tensor<8xf32> {
    %1 = sdy.named_computation<"f">(%so_far) (%b: tensor<8xf32>) {
      %3 = stablehlo.custom_call @log(%b) {has_side_effect = true} : (tensor<8xf32>) -> tensor<8xf32>
      sdy.return %3 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  %2 = scf.if %condition -> tensor<8xf32> {
    %4 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
    %5 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
    %6 = stablehlo.add %4, %5 : tensor<8xf32>
    scf.yield %6 : tensor<8xf32>
  } else {
    scf.yield %a : tensor<8xf32>
  }
  return
}
