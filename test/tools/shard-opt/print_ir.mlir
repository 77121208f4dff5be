// RUN: shard-opt %s --cse --canonicalize --mlir-print-ir-after-all -o %t 2>&1 | FileCheck %s --check-prefix=AFTERALL
// RUN: shard-opt %s --cse --canonicalize --mlir-print-ir-before-all -o %t 2>&1 | FileCheck %s --check-prefix=BEFOREALL
// RUN: shard-opt %s --cse --canonicalize --mlir-print-ir-after=cse -o %t 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: shard-opt %s --cse --canonicalize -mlir-print-ir-before=canonicalize -o %t 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: shard-opt %s --canonicalize --canonicalize --mlir-print-ir-after-change -o %t 2>&1 | FileCheck %s --check-prefix=CHANGE
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(cse))' --mlir-print-ir-after=cse -o %t 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(cse))' --mlir-print-ir-after=cse --mlir-print-ir-module-scope -o %t 2>&1 | FileCheck %s --check-prefix=MODULE
// RUN: not shard-opt %s --load %S/Inputs/passes.py --cse --fail-on-module --mlir-print-ir-after-failure 2>&1 | FileCheck %s --check-prefix=FAILURE

// AFTERALL: {{^}}// -----// IR Dump After CSE (cse) //----- //
// AFTERALL-NEXT: module {
// AFTERALL-NEXT: sdy.mesh @mesh = <["x"=2]>
// AFTERALL: arith.addi
// AFTERALL: // -----// IR Dump After Canonicalize (canonicalize) //----- //
// AFTERALL-NOT: arith.addi
// AFTERALL: sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<4xf32>
// BEFOREALL: // -----// IR Dump Before CSE (cse) //----- //
// BEFOREALL: // -----// IR Dump Before Canonicalize (canonicalize) //----- //
// AFTER: // -----// IR Dump After CSE (cse) //----- //
// AFTER-NOT: IR Dump
// BEFORE-NOT: (cse)
// BEFORE: // -----// IR Dump Before Canonicalize (canonicalize) //----- //
// CHANGE: // -----// IR Dump After Canonicalize (canonicalize) //----- //
// CHANGE-NOT: IR Dump
// FUNCTION: // -----// IR Dump After CSE (cse) //----- //
// FUNCTION-NEXT: func.func @f
// MODULE: // -----// IR Dump After CSE (cse) ('func.func' operation: @f) //----- //
// MODULE-NEXT: module {
// FAILURE: error: this module is not good enough
// FAILURE: // -----// IR Dump After Fail Failed (fail-on-module) //----- //
sdy.mesh @mesh = <["x"=2]>
func.func @f(%arg0: tensor<4xf32>) -> (i32, tensor<4xf32>) {
  %0 = arith.constant 2 : i32
  %1 = arith.addi %0, %0 : i32
  %2 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<4xf32>
  return %1, %2 : i32, tensor<4xf32>
}
