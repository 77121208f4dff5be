// RUN: not shard-opt %s --load %S/Inputs/passes.py --fail-on-module=manner=invalidate 2>&1 | FileCheck %s
// RUN: not shard-opt %s --load %S/Inputs/passes.py --fail-on-module=manner=invalidate --verify-each 2>&1 | FileCheck %s
// RUN: shard-opt %s --load %S/Inputs/passes.py --fail-on-module=manner=invalidate --verify-each=false | FileCheck %s --check-prefix=OFF
// RUN: shard-opt %s --load %S/Inputs/passes.py --fail-on-module=manner=invalidate -verify-each=0 | FileCheck %s --check-prefix=OFF

// CHECK: verify_each.mlir:[[# @LINE + 4]]:1: error: 'func.func' op requires attribute 'sym_name'
// CHECK: note: the operation is not valid after pass 'fail-on-module'
// OFF: "func.func"()
// OFF-NOT: sym_name
func.func @f() {
  return
}
