// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func @edges
func.func @edges(%a: tensor<8xf32>, %b: tensor<4xf32>, %i: tensor<i32>) -> tensor<8xf32> {
  // CHECK: sdy.data_flow_edge %arg1 sharding=<@mesh, [{"y", ?}]> {note} : tensor<4xf32>
  %0 = sdy.data_flow_edge %b sharding=<@mesh, [{"y", ?}]> {note} : tensor<4xf32>
  %1 = "stablehlo.case"(%i) ({
    stablehlo.return %a : tensor<8xf32>
  }, {
    %2 = stablehlo.negate %a : tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  // CHECK: sdy.data_flow_edge %{{.*}} : tensor<8xf32>
  %3 = sdy.data_flow_edge %1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// Named and manual computations are the sdy ops with edges.
// CHECK-LABEL: func @computation
func.func @computation(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {
    // CHECK: sdy.data_flow_edge %arg1 : tensor<8xf32>
    %1 = sdy.data_flow_edge %b : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: sdy.data_flow_edge %{{.*}} sharding=<@mesh, [{}]> : tensor<8xf32>
  %2 = sdy.data_flow_edge %0 sharding=<@mesh, [{}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// CHECK-LABEL: func @callee
func.func @callee(%a: memref<8xf32>) -> memref<8xf32> {
  // CHECK: sdy.func_data_flow_edge %arg0 : memref<8xf32>
  %0 = sdy.func_data_flow_edge %a : memref<8xf32>
  return %0 : memref<8xf32>
}

// CHECK-LABEL: func @caller
func.func @caller(%a: memref<8xf32>) -> memref<8xf32> {
  %0 = call @callee(%a) : (memref<8xf32>) -> memref<8xf32>
  // CHECK: sdy.func_data_flow_edge %{{.*}} {note} : memref<8xf32>
  %1 = sdy.func_data_flow_edge %0 {note} : memref<8xf32>
  return %1 : memref<8xf32>
}
