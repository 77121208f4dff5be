// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(cse,canonicalize),symbol-dce)' | FileCheck %s
// RUN: shard-opt %s --load=%S/Inputs/passes.py -pass-pipeline='builtin.module(cse,func.func(tag-function{times=2},canonicalize,tag-function{text={x y}}),any(canonicalize))' | FileCheck %s --check-prefixes=CHECK,TAG
// RUN: shard-opt %s --pass-pipeline='any()' | FileCheck %s --check-prefix=NOTHING

// CHECK-LABEL: func.func @f
// TAG-SAME: tag = "x y"
// CHECK-NEXT: %[[C:.*]] = arith.constant 4 : i32
// CHECK-NEXT: return %[[C]]
// NOTHING: arith.addi
func.func @f() -> i32 {
  %0 = arith.constant 2 : i32
  %1 = arith.constant 2 : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
