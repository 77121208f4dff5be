// RUN: rm -rf %t && mkdir %t
// RUN: not shard-opt %s --load %S/Inputs/crash.py --cse --crash=folder=%t/folder 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: not shard-opt %s --load %S/Inputs/crash.py --crash=number=SIGFPE -o %t/out 2>&1 | FileCheck %s --check-prefix=FPE
// RUN: not shard-opt %s --load %S/Inputs/crash.py --crash=number=SIGABRT 2>&1 | FileCheck %s --check-prefix=ABORT
// RUN: rmdir %t

// One line names the pass and the operation, and no file is left.

// PASS: crash.mlir:[[# @LINE + 7]]:1: error: MLIR was ended by SIGSEGV (segmentation fault) in pass 'crash' on this 'func.func'
// PASS-NOT: {{.}}
// FPE: crash.mlir:[[# @LINE + 5]]:1: error: MLIR was ended by SIGFPE (arithmetic exception) in pass 'crash' on this 'func.func'
// FPE-NOT: {{.}}
// ABORT: crash.mlir:[[# @LINE + 3]]:1: error: MLIR was ended by SIGABRT (abort) in pass 'crash' on this 'func.func'
// ABORT-NOT: {{.}}

func.func @first() {
  return
}
