// RUN: shard-opt %s --canonicalize | FileCheck %s
// RUN: shard-opt %s --canonicalize=region-simplify=disabled | FileCheck %s --check-prefix=DISABLED

// With branches, regions are simplified: the second argument of the loop is used only to compute itself.
// CHECK-LABEL: func.func @branches
// CHECK: cf.br ^[[LOOP:.*]](%{{[a-z0-9]*}} : index)
// CHECK-NOT: arith.muli

// DISABLED-LABEL: func.func @branches
// DISABLED: arith.muli
func.func @branches(%n: index, %a: index) -> index {
  %one = arith.constant 1 : index
  cf.br ^loop(%one, %a : index, index)
^loop(%i: index, %unused: index):
  %next = arith.addi %i, %one : index
  %made = arith.muli %unused, %unused : index
  %more = arith.cmpi slt, %next, %n : index
  cf.cond_br %more, ^loop(%next, %made : index, index), ^end
^end:
  return %next : index
}
