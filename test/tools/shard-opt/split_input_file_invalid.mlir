// RUN: not shard-opt %s --split-input-file 2>&1 | FileCheck %s

// A part with an error does not suppress the output of the others.
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
