// RUN: not shard-opt %s --split-inputfile 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not shard-opt %s -canonicalise 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: not shard-opt %s --zzzzzz=1 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not shard-opt %s --cse=x=1 2>&1 | FileCheck %s --check-prefix=PASSOPTION
// RUN: not shard-opt %s %s 2>&1 | FileCheck %s --check-prefix=TWICE

// OPTION: shard-opt: error: unknown option or pass '--split-inputfile'; did you mean '--split-input-file'?
// PASS: shard-opt: error: unknown option or pass '-canonicalise'; did you mean '--canonicalize'?
// NOTHING: shard-opt: error: unknown option or pass '--zzzzzz=1'; --help lists both
// PASSOPTION: shard-opt: error: '--cse=x=1': 'cse' has no option 'x'
// TWICE: shard-opt: error: more than one input file
func.func @f() {
  return
}
