// RUN: shard-opt %s --pass-pipeline='builtin.module(sdy-save-module{dump-directory=%t/made file-name=first dump-index=3},sdy-drop-sharding-and-mesh,sdy-save-module{dump-directory=%t/made},sdy-save-module)' | FileCheck %s --check-prefix=AFTER
// RUN: FileCheck %s --input-file=%t/made/03.first.mlir
// RUN: FileCheck %s --check-prefix=AFTER --input-file=%t/made/module.mlir
// RUN: not shard-opt %s --pass-pipeline='builtin.module(sdy-save-module{dump-directory=/dev/null})' 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: cannot write '/dev/null/module.mlir':

// CHECK: sdy.mesh @mesh = <["x"=2]>
// AFTER-NOT: sdy.mesh
sdy.mesh @mesh = <["x"=2]>

// CHECK: sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>
// AFTER: func.func @main(%arg0: tensor<4xf32>)
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}
