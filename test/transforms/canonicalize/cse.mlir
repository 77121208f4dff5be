// RUN: shard-opt %s --cse --split-input-file | FileCheck %s
// RUN: shard-opt %s --cse --split-input-file --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s --check-prefix=RUNS

// RUNS: IR Dump After {{.*}}(cse)

// Equal operations become one; sums are equal for any order of their operands.
// CHECK-LABEL: func.func @equal
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %arg0, %arg1
// CHECK-NEXT:    %[[NEGATED:.*]] = stablehlo.negate %[[SUM]]
// CHECK-NEXT:    return %[[NEGATED]], %[[NEGATED]]
func.func @equal(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = arith.addf %a, %b : tensor<4xf32>
  %1 = arith.addf %b, %a : tensor<4xf32>
  %2 = stablehlo.negate %0 : tensor<4xf32>
  %3 = stablehlo.negate %1 : tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Unused operations are erased.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT:    return
func.func @unused(%a: tensor<4xf32>) {
  %0 = stablehlo.negate %a : tensor<4xf32>
  return
}

// -----

// Operations with different attributes or types, or in different functions, are not equal.
// CHECK-LABEL: func.func @different
// CHECK-COUNT-4: stablehlo
// CHECK:         return
func.func @different(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %a, %b : tensor<4xf32>
  %1 = stablehlo.subtract %b, %a : tensor<4xf32>
  %2 = stablehlo.subtract %0, %1 {tag} : tensor<4xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func @other
// CHECK-NEXT:    stablehlo.subtract
func.func @other(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// An operation in a region may be replaced by an equal one outside of it, but not the reverse.
// CHECK-LABEL: func.func @regions
// CHECK:         %[[OUTER:.*]] = stablehlo.negate
// CHECK:         stablehlo.if
// CHECK-NEXT:      stablehlo.return %[[OUTER]]
// CHECK:           %[[INNER:.*]] = stablehlo.abs
// CHECK-NEXT:      stablehlo.return %[[INNER]]
// CHECK:         stablehlo.abs
func.func @regions(%a: tensor<4xf32>, %i: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = "stablehlo.if"(%i) ({
    %2 = stablehlo.negate %a : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    %2 = stablehlo.abs %a : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %3 = stablehlo.abs %a : tensor<4xf32>
  return %0, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
