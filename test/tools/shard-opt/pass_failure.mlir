// RUN: not shard-opt %s --load %S/Inputs/passes.py --fail-on-module 2>&1 | FileCheck %s --check-prefix=FAILURE
// RUN: not shard-opt %s --load %S/Inputs/passes.py --fail-on-module=manner=raise 2>&1 | FileCheck %s --check-prefix=RAISED

// FAILURE: pass_failure.mlir: error: this module is not good enough
// FAILURE: pass_failure.mlir:[[# @LINE + 8]]:1: note: look at this
// FAILURE-NOT: module {
// RAISED-NOT: Traceback
// RAISED: passes.py:{{[0-9]+}}:{{[0-9]+}}: error: pass 'fail-on-module' raised LookupError: nothing here
// RAISED-NEXT: raise LookupError("nothing here")
// RAISED-NEXT: {{^ *\^$}}
// RAISED: note: raised while the pass ran on this 'builtin.module'
// RAISED-NOT: Traceback
func.func @f() {
  return
}
