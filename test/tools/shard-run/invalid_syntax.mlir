// RUN: not shard-run %s 2>&1 | FileCheck %s
// RUN: printf '\377' | not shard-run - 2>&1 | FileCheck %s --check-prefix=UTF8

// CHECK: invalid_syntax.mlir:[[# @LINE + 5]]:{{[0-9]+}}: error:
// CHECK-NOT: Traceback
// UTF8: <stdin>:1:{{[0-9]+}}: error:
// UTF8-NOT: Traceback

func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
