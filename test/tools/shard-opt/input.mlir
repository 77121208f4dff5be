// RUN: shard-opt < %s | FileCheck %s
// RUN: shard-opt - < %s | FileCheck %s
// RUN: shard-opt -- %s -- | FileCheck %s
// RUN: shard-opt %s -o %t && FileCheck %s --input-file=%t
// RUN: shard-opt %s -o=- | FileCheck %s
// RUN: not shard-opt %t.missing 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not shard-opt %S 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not shard-opt %s -o %t.missing/out 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not shard-opt %s -o %S 2>&1 | FileCheck %s --check-prefix=OUTPUTDIRECTORY
// RUN: not shard-opt %t.missing -o %t.PNG 2>&1 | FileCheck %s --check-prefix=PICTURE

// PICTURE: shard-opt: error: --output={{.*}}.PNG: a module is written as text, or with --emit-bytecode as bytecode
// MISSING: shard-opt: error: cannot open input file '{{.*}}.missing': No such file or directory
// DIRECTORY: shard-opt: error: cannot open input file '{{.*}}': Is a directory
// OUTPUT: shard-opt: error: cannot open output file '{{.*}}.missing/out': No such file or directory
// OUTPUTDIRECTORY: shard-opt: error: cannot open output file '{{.*}}': Is a directory
// CHECK: func.func @f()
func.func @f() {
  return
}
