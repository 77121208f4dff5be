// RUN: shard-opt --help | FileCheck %s --check-prefixes=CHECK,OPTIONS
// RUN: shard-opt --help=all --load %S/Inputs/passes.py | FileCheck %s --check-prefixes=LOADED
// RUN: shard-opt -h --load %S/Inputs/passes.py | FileCheck %s --check-prefix=SHORT
// RUN: shard-opt --help=spmd-pipeline | FileCheck %s --check-prefix=PIPELINE
// RUN: shard-opt --help sdy-sink-data-flow-edges inline | FileCheck %s --check-prefix=PASSES
// RUN: shard-opt %s.missing --cse --mlir-timing --help | FileCheck %s --check-prefix=ADDED
// RUN: shard-opt --help=mlir-timing | FileCheck %s --check-prefix=OPTION
// RUN: not shard-opt --help spmdiz 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: shard-opt --list-passes | FileCheck %s
// RUN: shard-opt --version | FileCheck %s --check-prefix=VERSION
// RUN: shard-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS

// OPTIONS: usage: shard-opt
// OPTIONS: --pass-pipeline=TEXT {{ *}}- the pipeline to run
// OPTIONS: --split-input-file[=MARKER]
// CHECK: Pipelines:
// CHECK-NEXT: --sdy-export-pipeline
// CHECK: {{^}}normalize: bring every input
// CHECK-NEXT: --convert-sdy-to-shard
// CHECK: {{^}}propagate: decide the sharding of every tensor
// CHECK: --sdy-basic-propagate {{ *}}- {{.+}}
// CHECK-NOT: keep-sharding-rules
// CHECK: {{^}}partition: make
// CHECK: --spmdize
// CHECK: {{^}}communication: make
// CHECK: {{^}}canonicalize: simplify
// CHECK: --cse {{ *}}- Eliminate common sub-expressions
// CHECK: {{^}}Passes and pipelines of upstream MLIR and StableHLO:
// CHECK: --inline {{ *}}- Inline function calls
// CHECK-NOT: max-iterations
// CHECK: --stablehlo-legalize-to-vhlo {{ *}}- Convert StableHLO to VHLO
// CHECK: --help=PASS describes a pass or pipeline with its options

// LOADED: Pipelines:
// LOADED: --tag-twice {{ *}}- Give functions an attribute, and change it
// LOADED: {{^}}Passes of plugins:
// LOADED-NEXT: --fail-on-module {{ *}}- Fail
// LOADED-NEXT: manner {{ *}}- how (give-up, raise or invalidate; default give-up)
// LOADED: --tag-function {{ *}}- Give functions an attribute [func.func]
// LOADED-NEXT: text {{ *}}- the value of the attribute (a string; default tagged)
// LOADED-NEXT: times {{ *}}- how often it is in there (an integer; default 1)
// LOADED: --inline {{ *}}- Inline function calls
// LOADED: max-iterations {{ *}}- {{.*}}(default 4)

// SHORT: {{^}}Passes of plugins:
// SHORT-NEXT: --fail-on-module {{ *}}- Fail
// SHORT-NEXT: --

// PIPELINE: --spmd-pipeline: Converts a partially annotated module to the local program
// PIPELINE: A pipeline.
// PIPELINE: Decides all shardings by `shard-propagate`
// PIPELINE: Runs these passes where they apply: shard-check-annotations, {{.*}}
// PIPELINE: Options, as in --spmd-pipeline={{.*}}:
// PIPELINE: overlap {{ *}}- overlap communication with computation
// PIPELINE-NOT: Pipelines:

// PASSES: --sdy-sink-data-flow-edges: {{.+}}
// PASSES: A pass that runs on func.func.
// PASSES: --inline: Inline function calls
// PASSES: A pass of upstream that runs on any operation.
// PASSES: max-iterations {{ *}}- {{.*}}(default 4)

// ADDED: --cse: Eliminate common sub-expressions
// ADDED-NOT: Options:
// OPTION: --mlir-timing {{ *}}- print the execution time of each pass
// UNKNOWN: shard-opt: error: unknown option or pass 'spmdiz'; did you mean 'spmdize'?

// VERSION: mlir-shard {{[0-9]+\.[0-9]+\.[0-9]+}}
// DIALECTS: Available Dialects: {{.*,arith,.*,builtin,.*,func,.*,linalg,.*,sdy,.*,shard,.*,stablehlo,.*}}
