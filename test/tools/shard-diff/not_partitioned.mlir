// RUN: not shard-diff %s %s 2>&1 | FileCheck %s

// CHECK: not_partitioned.mlir:6:1: error: the mesh {{.*}} has 1048576 devices, too many to partition for
// CHECK: shard-diff: error: the programs cannot be compared, because one cannot be partitioned

sdy.mesh @mesh = <["x"=1048576]>

func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
