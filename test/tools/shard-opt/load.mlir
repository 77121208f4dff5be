// RUN: not shard-opt %s --load %S/Inputs/broken.py 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: not shard-opt %s --load %S/Inputs/unregistrable.py 2>&1 | FileCheck %s --check-prefix=UNREGISTRABLE
// RUN: not shard-opt %s --load %S/Inputs/missing.py 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not shard-opt %s --load %S/Inputs 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not shard-opt %s --load %s 2>&1 | FileCheck %s --check-prefix=LANGUAGE
// RUN: shard-opt %s --load %S/Inputs/passes.py --load %S/Inputs/passes.py --tag-function | FileCheck %s

// BROKEN-NOT: Traceback
// BROKEN: broken.py:7:1: error: cannot load '{{.*}}broken.py': RuntimeError: not today
// BROKEN-NEXT: raise RuntimeError("not today")
// UNREGISTRABLE: unregistrable.py:{{[0-9]+}}:{{[0-9]+}}: error: cannot load '{{.*}}unregistrable.py': RegistrationError: {{.*}}Unnamed: the name 'No Name' is not lower case words apart by dashes
// MISSING: shard-opt: error: cannot load '{{.*}}missing.py': no such file
// DIRECTORY: shard-opt: error: cannot load '{{.*}}Inputs': it is a directory
// LANGUAGE: shard-opt: error: cannot load '{{.*}}load.mlir': it is not a Python file
// CHECK: tag = "tagged"
func.func @f() {
  return
}
