// RUN: not shard-opt %s --load %S/Inputs/broken.py 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: not shard-opt %s --load %S/Inputs/unregistrable.py 2>&1 | FileCheck %s --check-prefix=UNREGISTRABLE
// RUN: not shard-opt %s --load %S/Inputs/missing.py 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not shard-opt %s --load %S/Inputs 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not shard-opt %s --load %s 2>&1 | FileCheck %s --check-prefix=LANGUAGE
// RUN: not shard-opt %s --load %S/Inputs/named_as_built_in.py 2>&1 | FileCheck %s --check-prefix=BUILTIN
// RUN: not shard-opt %s --load %S/Inputs/named_as_an_option.py 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: shard-opt %s --load %S/Inputs/passes.py --load %S/Inputs/passes.py --tag-function | FileCheck %s

// BROKEN-NOT: Traceback
// BROKEN: broken.py:7:1: error: cannot load '{{.*}}broken.py': RuntimeError: not today
// BROKEN-NEXT: raise RuntimeError("not today")
// UNREGISTRABLE: unregistrable.py:{{[0-9]+}}:{{[0-9]+}}: error: cannot load '{{.*}}unregistrable.py': RegistrationError: {{.*}}Unnamed: invalid name 'No Name': expected lower-case words separated by dashes
// MISSING: shard-opt: error: cannot load '{{.*}}missing.py': no such file
// DIRECTORY: shard-opt: error: cannot load '{{.*}}Inputs': it is a directory
// LANGUAGE: shard-opt: error: cannot load '{{.*}}load.mlir': it is not a Python file
// BUILTIN: named_as_built_in.py:{{1[01]}}:{{[12]}}: error: cannot load '{{.*}}named_as_built_in.py': RegistrationError: {{.*}}Mine: 'spmd-pipeline' is the name of a built-in pass or pipeline: choose another name
// BUILTIN-NOT: error:
// OPTION: named_as_an_option.py:10:1: error: 'load' is an option of shard-opt and cannot be the name of a pass or pipeline
// OPTION-NEXT: @register
// OPTION-NOT: error:
// CHECK: tag = "tagged"
func.func @f() {
  return
}
