// RUN: shard-opt %s --spmd-pipeline --memory-report=- -o %t.mlir 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOCAL --input-file=%t.mlir
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo --memory-report=%t.json | FileCheck %s --check-prefix=QUIET
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: not shard-opt %s --spmd-pipeline --memory-report=%t.missing/report.txt 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not shard-opt %S/Inputs/dynamic.mlir --memory-report=- 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// RUN: shard-run %s --no-verify --memory-report=- | FileCheck %s
// RUN: shard-run %s --no-verify --timing=json | FileCheck %s --check-prefix=TIMING

// On a rank, the arguments have 8 KiB and 32 KiB, and the product and its sum over the ranks have 16 KiB each.
// CHECK: memory of a rank {{ *}}bytes
// CHECK: arguments {{ *}}40,960 B
// CHECK-NEXT: results {{ *}}16,384 B
// CHECK-NEXT: temporaries {{ *}}16,384 B
// CHECK-NEXT: collectives {{ *}}0 B
// CHECK-NEXT: constants {{ *}}0 B
// CHECK: at most {{ *}}73,728 B
// CHECK: most is live at shard.all_reduce at {{.*}}memory_report.mlir:[[#]]:8; the largest values then:
// CHECK: 32,768 B {{ *}}argument {{ *}}arg1
// CHECK-NEXT: 16,384 B {{ *}}temporary {{ *}}stablehlo.dot
// CHECK-NEXT: 16,384 B {{ *}}result {{ *}}shard.all_reduce

// LOCAL: shard.all_reduce
// QUIET-NOT: memory
// JSON: "engine": "pjrt"
// JSON: "arguments": 40960
// JSON: "name": "arg1"
// JSON: "peak": 73728
// FILE: shard-opt: error: cannot open output file
// DYNAMIC: dynamic.mlir:2:8: error: cannot predict memory: a tensor is of dynamic shape: see shard-make-static
// TIMING: "predicted_memory": {
// TIMING: "peak": 73728

sdy.mesh @mesh = <["data"=2, "model"=2]>

func.func @main(
    %x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
    %w: tensor<128x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> (tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {

  %0 = stablehlo.dot %x, %w : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}
