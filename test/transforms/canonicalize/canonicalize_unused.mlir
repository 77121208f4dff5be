// RUN: shard-opt %s --canonicalize | FileCheck %s

// Without branches, what is unused goes with all that it alone needs, in regions too.
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
