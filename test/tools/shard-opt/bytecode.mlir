// RUN: shard-opt %s --emit-bytecode -o %t.mlirbc
// RUN: head -c 4 %t.mlirbc | od -A n -t x1 | FileCheck %s --check-prefix=MAGIC
// RUN: shard-opt %s --mlir-print-debuginfo > %t.mlir
// RUN: shard-opt %t.mlirbc --mlir-print-debuginfo | cmp - %t.mlir
// RUN: shard-opt --emit-bytecode < %t.mlirbc | shard-opt - --sdy-propagation-pipeline | FileCheck %s
// RUN: head -c 300 %t.mlirbc > %t.cut
// RUN: not shard-opt %t.cut 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: sed 's/sdy.mesh/sdy.mess/g' %t.mlirbc > %t.mess
// RUN: not shard-opt %t.mess 2>&1 | FileCheck %s --check-prefix=MESS
// RUN: sed 's/=2, /=?, /' %t.mlirbc > %t.size
// RUN: not shard-opt %t.size 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not shard-opt %s --emit-bytecode --split-input-file 2>&1 | FileCheck %s --check-prefix=SPLIT

// Tests modules as bytecode, with operations and attributes of sdy, and with errors that name the file.

// MAGIC: 4d 4c ef 52
// CUT: {{.*}}.cut: error: attempting to parse
// MESS: {{.*}}.mess: error: expected dynamic attribute in `#sdy.mess
// SIZE: bytecode.mlir:[[# @LINE + 4]]:1: error: 'sdy.mesh' op attribute 'mesh' must be a #sdy.mesh: expected an integer for 'size'
// SPLIT: shard-opt: error: --emit-bytecode is not allowed with --split-input-file

// CHECK: sdy.mesh @mesh = <["data"=2, "model"=2]>
sdy.mesh @mesh = <["data"=2, "model"=2]>

// CHECK: @main
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<8x4xf32> {
  // CHECK: stablehlo.dot {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}
  %0 = stablehlo.dot %x, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : tensor<8x4xf32>
  // CHECK: sdy.manual_computation
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>]
      manual_axes={"data"} (%block: tensor<4x4xf32>) {
    sdy.return %block : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
