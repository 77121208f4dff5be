// RUN: not shard-opt %s -o %t 2>&1 | FileCheck %s
// RUN: echo untouched > %t.old
// RUN: not shard-opt %s -o %t.old
// RUN: FileCheck %s --check-prefix=OLD --input-file=%t.old

// OLD: untouched
// CHECK-NOT: Traceback
// CHECK: truncated.mlir:[[# @LINE + 4]]:1: error: {{.+}}
sdy.mesh @mesh = <["x"=2]>
func.func @f(%arg0: tensor<4xf32>) {
  %0 = sdy.reshard %arg0 <@mesh, [{"x"
