// RUN: not shard-opt %s --split-input-file --verify-diagnostics 2>&1 | FileCheck %s
// RUN: not shard-opt %s --split-input-file --verify-diagnostics=only-expected 2>&1 | FileCheck %s --check-prefix=ONLY

// CHECK: verify_diagnostics_invalid.mlir:[[# @LINE + 5]]:4: error: expected error "not to be seen" was not produced
// CHECK-NEXT: // expected-error {{.*}}
// CHECK: verify_diagnostics_invalid.mlir:[[# @LINE + 11]]:3: error: unexpected error: custom op 'retrun' is unknown
// ONLY: error: expected error "not to be seen" was not produced
// ONLY-NOT: unexpected
// expected-error @+1 {{not to be seen}}
func.func @f() {
  return
}

// -----

func.func @g() {
  retrun
}
