// RUN: printf '' | not shard-run - 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: printf 'module {}' | not shard-run - 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: printf 'module {}' | not shard-run --engine=pjrt - 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not shard-run %s 2>&1 | FileCheck %s --check-prefix=DECLARED
// RUN: not shard-run --engine=pjrt %s 2>&1 | FileCheck %s --check-prefix=DECLARED
// RUN: shard-run %s --function=inner | FileCheck %s --check-prefix=PRIVATE
// RUN: shard-run --engine=pjrt %s --function=inner | FileCheck %s --check-prefix=PRIVATE
// RUN: not shard-run --trust-native --engine=pjrt %S/Inputs/declared_callee.mlir 2>&1 | FileCheck %s --check-prefix=CALLED
// RUN: not shard-run --trust-native %S/Inputs/declared_callee.mlir 2>&1 | FileCheck %s --check-prefix=UNDEFINED

// NOTHING: shard-run: error: the program has no function @main to run; its functions: none with a body
// NOTHING-NOT: {{.}}

// DECLARED: shard-run: error: the program has no function @main to run; its functions: @inner
// DECLARED-NOT: {{.}}

// A private function without calls can be run.
// PRIVATE: 0       tensor<4xf32> {{.*}} OK

// CALLED: declared_callee.mlir:1:1: error: @absent is called, but has no body
// UNDEFINED: declared_callee.mlir:3:8: error: this calls 'absent', which no available library defines
// UNDEFINED: shard-run: error: the program cannot be run on this machine
// CALLED: shard-run: error: the program is incomplete, but PJRT requires all functions

func.func private @main(%a: tensor<4xf32>) -> tensor<4xf32>

func.func private @inner(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
