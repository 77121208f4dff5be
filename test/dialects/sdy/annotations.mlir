// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

// CHECK-LABEL: func @annotations
func.func @annotations(%a: tensor<8xf32>, %d: tensor<?x2xf32>) -> tensor<8xf32> {
  // CHECK: sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
  sdy.sharding_group %a group_id=0 : tensor<8xf32>
  // CHECK: sdy.sharding_group %arg1 group_id=12345678901 {note} : tensor<?x2xf32>
  sdy.sharding_group %d group_id=12345678901 {note} : tensor<?x2xf32>
  // CHECK: %[[N:.*]] = sdy.propagation_barrier %arg0 allowed_direction=NONE : tensor<8xf32>
  %0 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<8xf32>
  // CHECK: %[[F:.*]] = sdy.propagation_barrier %[[N]] allowed_direction=FORWARD : tensor<8xf32>
  %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8xf32>
  // CHECK: %[[B:.*]] = sdy.propagation_barrier %[[F]] allowed_direction=BACKWARD : tensor<8xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=BACKWARD : tensor<8xf32>
  // CHECK: sdy.propagation_barrier %arg1 allowed_direction=NONE {note} : tensor<?x2xf32>
  %3 = sdy.propagation_barrier %d allowed_direction=NONE {note} : tensor<?x2xf32>
  return %2 : tensor<8xf32>
}

// CHECK-LABEL: func @constants
func.func @constants() -> tensor<2x2xi32> {
  // CHECK: sdy.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi32>
  %0 = sdy.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  // CHECK: sdy.constant {note = "scalar"} dense<5.000000e-01> : tensor<f64>
  %1 = sdy.constant {note = "scalar"} dense<5.000000e-01> : tensor<f64>
  return %0 : tensor<2x2xi32>
}
