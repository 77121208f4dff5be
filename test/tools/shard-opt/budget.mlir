// RUN: shard-opt %s --spmd-pipeline --budget=bytes=16KiB,collectives=1 --budget time=1s,memory=1MB | FileCheck %s
// RUN: not shard-opt %s --spmd-pipeline --budget=bytes=15kB,collectives=0 -o %t.absent 2>&1 | FileCheck %s --check-prefix=ABOVE
// RUN: not ls %t.absent
// RUN: not shard-opt %s --spmd-pipeline --budget time=1ns 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not shard-opt %s --spmd-pipeline --budget memory=40KiB 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not shard-opt %s --budget bytes=1 2>&1 | FileCheck %s --check-prefix=GLOBAL
// RUN: not shard-opt %s --budget byte=1 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not shard-opt %s --budget bytes=5% 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not shard-opt %s --budget bytes=1,bytes=2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not shard-opt %s --budget= 2>&1 | FileCheck %s --check-prefix=EMPTY

// CHECK: shard.all_reduce

// ABOVE: budget.mlir:{{[0-9]+}}:8: error: the program exceeds its budget of bytes by 1.35 KiB (9.2%): a device receives 16.0 KiB, and the budget is 15kB
// ABOVE: budget.mlir:{{[0-9]+}}:8: note: 16.0 KiB: all_reduce along model=2 for 'stablehlo.dot'
// ABOVE: error: the program exceeds its budget of collectives by 1: the collectives are 1, and the budget is 0
// ABOVE: note: 1: all_reduce along model=2 for 'stablehlo.dot'
// TIME: error: the program exceeds its budget of time by {{.*}}: the collectives are predicted to take {{.*}}, and the budget is 1ns
// MEMORY: error: the program exceeds its budget of memory by {{.*}}: a device needs {{.*}} KiB, and the budget is 40KiB
// MEMORY: note: 32.0 KiB: argument arg1
// GLOBAL: error: a budget requires a local program: the module is not local: 'func.func' has sdy shardings
// NAME: shard-opt: error: --budget: 'byte' is not a quantity; did you mean 'bytes'?
// SHARE: shard-opt: error: --budget: '5%' is not an amount of bytes: expected 10MiB or 1.5GB
// TWICE: shard-opt: error: --budget: 'bytes' is given twice
// EMPTY: shard-opt: error: --budget: it is empty: expected bytes=10MiB or 1.5GB

sdy.mesh @mesh = <["data"=2, "model"=2]>

func.func @main(
    %x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
    %w: tensor<128x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> (tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {

  %0 = stablehlo.dot %x, %w : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}
