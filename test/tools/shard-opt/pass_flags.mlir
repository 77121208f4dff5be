// RUN: shard-opt %s --cse -canonicalize | FileCheck %s --check-prefix=BOTH
// RUN: shard-opt %s -cse | FileCheck %s --check-prefix=CSE
// RUN: shard-opt --canonicalize=region-simplify=aggressive %s | FileCheck %s --check-prefix=BOTH
// RUN: shard-opt --inline='max-iterations=2 inlining-threshold=5' --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=OPTIONS
// RUN: shard-opt --load %S/Inputs/passes.py %s --tag-function='text=a times=3' | FileCheck %s --check-prefix=PYTHON
// RUN: shard-opt --load %S/Inputs/passes.py %s --tag-function=text=a --llvm-request-c-wrappers --cse --tag-function={text=b} --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: shard-opt --load %S/Inputs/passes.py %s --tag-twice --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: shard-opt --load %S/Inputs/passes.py %s --tag-twice=text=last | FileCheck %s --check-prefix=LAST

// OPTIONS: builtin.module(inline{max-iterations=2 inlining-threshold=5})
// NESTED: builtin.module(func.func(tag-function{text=a},llvm-request-c-wrappers),cse,func.func(tag-function{text=b}))
// PIPELINE: builtin.module(func.func(tag-function{text=first}),canonicalize,func.func(tag-function{text=second}))

// PYTHON: func.func @f{{.*}} attributes {tag = "aaa"}
// LAST: func.func @f{{.*}} attributes {tag = "last"}
// BOTH-LABEL: func.func @f
// BOTH-NEXT: %[[C:.*]] = arith.constant 4 : i32
// BOTH-NEXT: return %[[C]]
// CSE-LABEL: func.func @f
// CSE-NEXT: %[[C:.*]] = arith.constant 2 : i32
// CSE-NEXT: %[[S:.*]] = arith.addi %[[C]], %[[C]] : i32
// CSE-NEXT: return %[[S]]
func.func @f() -> i32 {
  %0 = arith.constant 2 : i32
  %1 = arith.constant 2 : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
