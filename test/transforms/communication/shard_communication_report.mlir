// RUN: shard-opt %s --shard-communication-report -o /dev/null 2>&1 | FileCheck %s
// RUN: shard-opt %s --shard-communication-report=output=%t.txt -o /dev/null && FileCheck %s --input-file=%t.txt
// RUN: shard-opt %s --shard-communication-report='format=json output=%t.json' | FileCheck %s --check-prefix=SAME
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: echo 'links.model = { latency = 1.0, bandwidth = 1024.0 }' > %t.toml
// RUN: shard-opt %s --shard-communication-report=costs=%t.toml -o /dev/null 2>&1 | FileCheck %s --check-prefix=COSTS
// RUN: echo 'module {}' | shard-opt --shard-communication-report 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not shard-opt %s --shard-communication-report=output=%t.missing/report 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not shard-opt %s --shard-communication-report=costs=%t.missing 2>&1 | FileCheck %s --check-prefix=MODEL

// Bytes are those that a device receives from others: along p devices, an all-gather brings a device p - 1 shards, and
// an all-reduce brings it (p - 1) / p of the tensor to add and as much of the sums of others.

// CHECK: collective {{ *}}axes {{ *}}groups {{ *}}a device receives {{ *}}all receive {{ *}}time {{ *}}for {{ *}}at
// CHECK: all_gather {{ *}}data=2 {{ *}}3 {{ *}}128 B {{ *}}768 B {{ *}}1 µs {{ *}}arith.negf {{ *}}{{.*}}report.mlir:[[# @LINE + 32]]:
// CHECK: all_reduce {{ *}}model=3 {{ *}}2 {{ *}}172 B {{ *}}1,032 B {{ *}}4 µs {{ *}}arith.addf {{ *}}{{.*}}report.mlir:[[# @LINE + 32]]:
// CHECK: reduce_scatter {{ *}}data=2 model=3 {{ *}}1 {{ *}}160 B {{ *}}960 B {{ *}}3 µs {{ *}}arith.mulf (in a loop)
// CHECK: all_to_all {{ *}}data=2 {{ *}}3 {{ *}}96 B {{ *}}576 B {{ *}}1 µs {{ *}}arith.mulf (in a loop)
// CHECK: 4 collectives {{ *}}556 B {{ *}}3,336 B

// JSON: "kind": "all_gather"
// JSON: "name": "data",
// JSON-NEXT: "size": 2
// JSON: "groups": 3,
// JSON-NEXT: "operand_bytes": 128,
// JSON-NEXT: "result_bytes": 256,
// JSON-NEXT: "bytes_received": 128,
// JSON-NEXT: "total_bytes": 768,
// JSON: "op": "arith.negf",
// JSON-NEXT: "place": "{{.*}}report.mlir:{{.*}}",
// JSON-NEXT: "function": "main",
// JSON-NEXT: "loops": 0
// JSON: "totals"

// COSTS: all_reduce {{ *}}model=3 {{ *}}2 {{ *}}172 B {{ *}}1,032 B {{ *}}4.17 s

// NONE: no collectives
// OUTPUT: error: cannot write '{{.*}}': No such file or directory
// MODEL: error: costs: cost model {{.*}}: No such file or directory

// The program is not changed.
// SAME: shard.all_gather
shard.grid @grid(shape = 2x3) {mlir_shard.axis_names = ["data", "model"]}

func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %n: index) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %gathered = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<4x8xf32> -> tensor<8x8xf32>
  %negative = arith.negf %gathered : tensor<8x8xf32>
  %partial = arith.addf %a, %a : tensor<4x8xf32>
  %sum = shard.all_reduce %partial on @grid grid_axes = [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return %negative, %sum : tensor<8x8xf32>, tensor<4x8xf32>
}

func.func @loop(%a: tensor<12x4xf32>, %n: index) -> tensor<12x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %result = scf.for %i = %zero to %n step %one iter_args(%value = %a) -> tensor<12x4xf32> {
    %partial = arith.mulf %value, %value : tensor<12x4xf32>
    %scattered = shard.reduce_scatter %partial on @grid grid_axes = [0, 1] scatter_dim = 0
        : tensor<12x4xf32> -> tensor<2x4xf32>
    %turned = shard.all_to_all %a on @grid grid_axes = [0] split_axis = 0 concat_axis = 1
        : tensor<12x4xf32> -> tensor<6x8xf32>
    %square = arith.mulf %turned, %turned : tensor<6x8xf32>
    scf.yield %value : tensor<12x4xf32>
  }
  return %result : tensor<12x4xf32>
}
