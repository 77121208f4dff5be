// RUN: shard-run %s | FileCheck %s
// RUN: not shard-run --engine=pjrt %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: 0 tensor<4x6xf32> <@m, [{"a"}, {}]> {{.*}} OK
// CHECK-NEXT: 1 f32 replicated {{.*}} OK
// CHECK-NEXT: 2 index replicated {{.*}} OK
// UNKNOWN: error: 'tensor.empty' cannot be run by PJRT, nor can linalg.fill, arith.addf, arith.addi
// UNKNOWN-NOT: tensor.extract
sdy.mesh @m = <["a"=2]>
func.func @main(%f: f32, %n: index, %x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> (tensor<4x6xf32>, f32, index) {
  %empty = tensor.empty() : tensor<4x6xf32>
  %all = linalg.fill ins(%f : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = arith.addf %x, %all : tensor<4x6xf32>
  %1 = arith.addf %f, %f : f32
  %2 = arith.addi %n, %n : index
  return %0, %1, %2 : tensor<4x6xf32>, f32, index
}
