// RUN: shard-opt %s --cse --canonicalize --mlir-timing 2>&1 | FileCheck %s

// CHECK: ... Execution time report ...
// CHECK: Total Execution Time: {{[0-9.]+}} seconds
// CHECK: ----Wall Time----  ----Name----
// CHECK: {{[0-9.]+ \( *[0-9.]+%\)}}  Parser
// CHECK-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  CSE (cse)
// CHECK-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  Canonicalize (canonicalize)
// CHECK: (100.0%)  Total
func.func @f() {
  return
}
