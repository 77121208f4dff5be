// RUN: shard-opt %s --allow-unregistered-dialect | FileCheck %s
// RUN: not shard-opt %s 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK: "my.operation"() : () -> ()
// ERROR: unregistered_dialect.mlir:[[# @LINE + 1]]:{{[0-9]+}}: error: {{.*}}unregistered dialect
"my.operation"() : () -> ()
