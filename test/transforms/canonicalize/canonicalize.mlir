// RUN: shard-opt %s --canonicalize | FileCheck %s
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(canonicalize))' | FileCheck %s
// RUN: shard-opt %s --canonicalize=disable-patterns=reshard-of-reshard | FileCheck %s --check-prefix=DISABLED
// RUN: shard-opt %s --canonicalize=disable-patterns=sdy-reshard | FileCheck %s --check-prefix=DISABLED
// RUN: shard-opt %s --canonicalize=enable-patterns=sdy-collective | FileCheck %s --check-prefix=DISABLED
// RUN: not shard-opt %s --canonicalize=region-simplify=somewhat 2>&1 | FileCheck %s --check-prefix=ERROR

sdy.mesh @mesh = <["x"=2]>

// The two reshards become adjacent only after the host folds the constant condition.
// CHECK-LABEL: func @with_the_host
// DISABLED-LABEL: func @with_the_host
func.func @with_the_host(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
  // CHECK-NEXT: return %[[R]]
  // DISABLED: sdy.reshard %arg0 <@mesh, [{"x"}]>
  // DISABLED: sdy.reshard
  %true = arith.constant true
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  %1 = arith.select %true, %0, %b : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// An unused pure operation is dead.
// CHECK-LABEL: func @dead
func.func @dead(%a: tensor<8xf32>) {
  // CHECK-NEXT: return
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  %1 = sdy.constant dense<1.0> : tensor<8xf32>
  return
}

// ERROR: region-simplify
