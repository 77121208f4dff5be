// RUN: not shard-opt %s --split-input-file 2>&1 | FileCheck %s

// One part with an error hides nothing of the others.
// CHECK: split_input_file_invalid.mlir:[[# @LINE + 8]]:22: error: custom op 'retrun' is unknown
// CHECK: func.func @before
// CHECK: // -----
// CHECK: // -----
// CHECK: func.func @after
func.func @before() { return }
// -----

func.func @wrong() { retrun }

// -----
func.func @after() { return }
