// RUN: shard-opt %s --split-input-file | FileCheck %s
// RUN: shard-opt %s --split-input-file --output-split-marker='// ====' | FileCheck %s --check-prefix=MARKER
// RUN: shard-opt %s --split-input-file='// ++' --allow-unregistered-dialect | FileCheck %s --check-prefix=OTHER
// RUN: not shard-opt %s --split-input-file --fold-memref-alias-ops --mlir-print-ir-after-all -symbol-privatize --load %S/Inputs/passes.py --fail-on-module 2>&1 | FileCheck %s --check-prefix=LINES
// RUN: shard-opt %s --split-input-file --mlir-print-debuginfo | FileCheck %s --check-prefix=LOCATIONS

// CHECK: func.func private @first()
// CHECK: {{^}}// -----
// CHECK: func.func private @second()
// MARKER: {{^}}// ====
// OTHER: func.func private @first()
// OTHER-NEXT: func.func private @second()
// LINES: split_input_file.mlir:[[# @LINE + 6]]:1: note: look at this
// LINES-NEXT: func.func private @first()
// LINES: split_input_file.mlir:[[# @LINE + 6]]:1: note: look at this
// LINES-NEXT: func.func private @second()
// LOCATIONS: #[[LOC:.*]] = loc("{{.*}}split_input_file.mlir":[[# @LINE + 2]]:1)
// LOCATIONS: #[[LOC:.*]] = loc("{{.*}}split_input_file.mlir":[[# @LINE + 3]]:1)
func.func private @first()
// ----- the next one
func.func private @second()
