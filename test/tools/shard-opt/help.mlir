// RUN: shard-opt --help | FileCheck %s --check-prefixes=CHECK,OPTIONS
// RUN: shard-opt -h --load %S/Inputs/passes.py | FileCheck %s --check-prefixes=LOADED
// RUN: shard-opt --list-passes | FileCheck %s
// RUN: shard-opt --version | FileCheck %s --check-prefix=VERSION
// RUN: shard-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS

// OPTIONS: usage: shard-opt
// OPTIONS: --pass-pipeline=TEXT {{ *}}- the pipeline to run
// OPTIONS: --split-input-file[=MARKER]
// LOADED: --fail-on-module {{ *}}- Fail
// LOADED-NEXT: manner {{ *}}- how (give-up, raise or invalidate; default give-up)
// LOADED: --tag-function {{ *}}- Give functions an attribute [func.func]
// LOADED-NEXT: text {{ *}}- the value of the attribute (a string; default tagged)
// LOADED-NEXT: times {{ *}}- how often it is in there (an integer; default 1)
// LOADED: Pipelines:
// LOADED: --tag-twice {{ *}}- Give functions an attribute, and change it
// CHECK: --sdy-basic-propagate {{ *}}- {{.+}}
// CHECK: --cse {{ *}}- Eliminate common sub-expressions
// CHECK: --inline {{ *}}- Inline function calls
// OPTIONS: max-iterations {{ *}}- {{.*}}(default 4)
// CHECK: --stablehlo-legalize-to-vhlo {{ *}}- Convert StableHLO to VHLO

// VERSION: mlir-shard {{[0-9]+\.[0-9]+\.[0-9]+}}
// DIALECTS: Available Dialects: {{.*,arith,.*,builtin,.*,func,.*,linalg,.*,sdy,.*,shard,.*,stablehlo,.*}}
