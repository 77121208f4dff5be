// RUN: not shard-opt %s --pass-pipeline='builtin.module(ces)' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not shard-opt %s --pass-pipeline='builtin.module(inline{max-iteration=1})' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not shard-opt %s --pass-pipeline='builtin.module(inline{max-iterations=few})' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not shard-opt %s --pass-pipeline='builtin.module(func.func(convert-func-to-llvm))' 2>&1 | FileCheck %s --check-prefix=NESTING
// RUN: not shard-opt %s --pass-pipeline='builtin.module(func.func(gpu-lower-to-nvvm-pipeline))' 2>&1 | FileCheck %s --check-prefix=HOSTPIPELINE
// RUN: not shard-opt %s --pass-pipeline='builtin.module(cse,func.func(spmd-pipeline))' 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not shard-opt %s --load %S/Inputs/passes.py --pass-pipeline='builtin.module(cse,tag-function)' 2>&1 | FileCheck %s --check-prefix=PYTHON
// RUN: not shard-opt %s --load %S/Inputs/passes.py --pass-pipeline='builtin.module(fail-on-module{manner=rise})' 2>&1 | FileCheck %s --check-prefix=CHOICE
// RUN: not shard-opt %s --pass-pipeline='func.func(cse)' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// RUN: not shard-opt %s --pass-pipeline='cse' 2>&1 | FileCheck %s --check-prefix=BARE
// RUN: not shard-opt %s --pass-pipeline='builtin.module(cse' 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: not shard-opt %s --pass-pipeline='any(cse)' --cse 2>&1 | FileCheck %s --check-prefix=EXCLUSIVE

// NAME: --pass-pipeline:1:16: error: 'ces' is neither a pass nor a pipeline; did you mean 'cse'?
// NAME-NEXT: builtin.module(ces)
// NAME-NEXT: {{^ {15}\^$}}
// OPTION: --pass-pipeline:1:23: error: 'inline' has no option 'max-iteration'; did you mean 'max-iterations'?
// VALUE: --pass-pipeline:1:23: error: option 'max-iterations' of 'inline': 'few' value invalid for uint argument
// NESTING: --pass-pipeline:1:26: error: pass 'convert-func-to-llvm' runs on builtin.module, not on func.func: move it out of func.func(...)
// HOSTPIPELINE: --pass-pipeline:1:26: error: pipeline 'gpu-lower-to-nvvm-pipeline' runs on builtin.module, not on func.func: move it out of func.func(...)
// PIPELINE: --pass-pipeline:1:30: error: pipeline 'spmd-pipeline' runs on builtin.module, not on func.func: move it out of func.func(...)
// PIPELINE-NEXT: builtin.module(cse,func.func(spmd-pipeline))
// PIPELINE-NOT: error:
// PYTHON: --pass-pipeline:1:20: error: pass 'tag-function' runs on func.func, not on builtin.module: write func.func(tag-function)
// CHOICE: error: option 'manner' of 'fail-on-module' expects give-up, raise or invalidate, got 'rise'
// ANCHOR: --pass-pipeline:1:1: error: the pipeline runs on func.func, not on builtin.module: write builtin.module(func.func(cse))
// BARE: --pass-pipeline:1:1: error: the pipeline must be wrapped in the operation it runs on: builtin.module(cse)
// CUT: --pass-pipeline:1:19: error: expected ')' after the passes of 'builtin.module'
// EXCLUSIVE: shard-opt: error: '--cse' is not allowed with --pass-pipeline
func.func @f() {
  return
}
