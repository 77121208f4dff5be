// The two-dimensional weight-stationary layer of arXiv:2211.05102, figure 2b, annotated only on inputs, weights and
// output. The collectives are the four that the paper derives: of the input along y, of the hidden layer along x before
// and after its activation, and of the output along y.

// RUN: shard-opt %examples/weight_stationary.mlir --spmd-pipeline | FileCheck %s --check-prefix=LOCAL
// RUN: shard-run %examples/weight_stationary.mlir --verify --communication-report=- | FileCheck %s
// RUN: shard-run %examples/weight_stationary.mlir --no-verify --communication-report=%t.json | FileCheck %s --check-prefix=QUIET
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: not shard-run %examples/weight_stationary.mlir --communication-report=%t.missing/report.txt 2>&1 | FileCheck %s --check-prefix=FILE

// LOCAL: %[[INPUT:.*]] = shard.all_gather %arg0 on @mesh grid_axes = [1] gather_axis = 1 : tensor<8x8xf32> -> tensor<8x16xf32>
// LOCAL: linalg.matmul ins(%[[INPUT]], %arg1
// LOCAL: %[[HIDDEN:.*]] = shard.reduce_scatter {{.*}} grid_axes = [0] scatter_dim = 1 : tensor<8x64xf32> -> tensor<8x32xf32>
// LOCAL: %[[ACTIVATED:.*]] = linalg.max ins(%[[HIDDEN]],
// LOCAL-NEXT: %[[WHOLE:.*]] = shard.all_gather %[[ACTIVATED]] on @mesh grid_axes = [0] gather_axis = 1 : tensor<8x32xf32> -> tensor<8x64xf32>
// LOCAL: %[[PARTIAL:.*]] = linalg.matmul ins(%[[WHOLE]], %arg2
// LOCAL-NEXT: %[[OUTPUT:.*]] = shard.reduce_scatter %[[PARTIAL]] on @mesh grid_axes = [1] scatter_dim = 1 : tensor<8x16xf32> -> tensor<8x8xf32>
// LOCAL-NEXT: return %[[OUTPUT]]

// CHECK: @main on 4 ranks
// CHECK: tensor<8x32xf32>  <@mesh, [{}, {"x", "y"}]> {{.*}} OK
// CHECK: all_gather {{ *}}y=2 {{ *}}2 {{ *}}256 B {{ *}}1,024 B {{ *}}1 µs {{ *}}linalg.matmul {{.*}}weight_stationary.mlir:16:
// CHECK-NEXT: reduce_scatter {{ *}}x=2 {{ *}}2 {{ *}}1,024 B {{ *}}4,096 B {{.*}} linalg.matmul {{.*}}weight_stationary.mlir:16:
// CHECK-NEXT: all_gather {{ *}}x=2 {{ *}}2 {{ *}}1,024 B {{ *}}4,096 B {{.*}} linalg.matmul {{.*}}weight_stationary.mlir:23:
// CHECK-NEXT: reduce_scatter {{ *}}y=2 {{ *}}2 {{ *}}256 B {{ *}}1,024 B {{.*}} linalg.matmul {{.*}}weight_stationary.mlir:23:
// CHECK: 4 collectives {{ *}}2,560 B {{ *}}10,240 B

// QUIET-NOT: collective
// JSON: "kind": "all_gather"
// JSON: "bytes_received": 2560,
// JSON-NEXT: "total_bytes": 10240,

// FILE: shard-run: error: {{.*}}missing/report.txt
