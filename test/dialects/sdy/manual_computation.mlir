// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=3, "z"=4]>
sdy.mesh @same = <["x"=2, "y"=3, "z"=4]>

// CHECK-LABEL: func @nothing
func.func @nothing() {
  // CHECK-NEXT: sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"any"} () {
  // CHECK-NEXT:   sdy.return
  // CHECK-NEXT: } : () -> ()
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"any"} () {
    sdy.return
  } : () -> ()
  return
}

// The manual axes x and y divide 12 by 6; the free axis z does not change the shapes in the body.
// CHECK-LABEL: func @cuts
func.func @cuts(%a: tensor<12x8xf32>, %b: tensor<4xi1>) -> tensor<12x8xf32> {
  // CHECK-NEXT: %[[R:.*]]:2 = sdy.manual_computation(%arg0, %arg1)
  // CHECK-SAME: in_shardings=[<@mesh, [{"y", "x", "z", ?}, {}]>, <@same, [{"z"}], replicated={"x", "y"}>]
  // CHECK-SAME: out_shardings=[<@mesh, [{"x", "y"}, {?}]>, <@mesh, [{}, {"x"}], replicated={"y"}>]
  // CHECK-SAME: manual_axes={"x", "y"} (%arg2: tensor<2x8xf32>, %arg3: tensor<4xi1>) {
  // CHECK-NEXT:   sdy.return %arg2, %arg2 : tensor<2x8xf32>, tensor<2x8xf32>
  // CHECK-NEXT: } {note} : (tensor<12x8xf32>, tensor<4xi1>) -> (tensor<12x8xf32>, tensor<2x16xf32>)
  %0:2 = sdy.manual_computation(%a, %b)
      in_shardings=[<@mesh, [{"y", "x", "z", ?}, {}]>, <@same, [{"z"}], replicated={"x", "y"}>]
      out_shardings=[<@mesh, [{"x", "y"}, {?}]>, <@mesh, [{}, {"x"}], replicated={"y"}>]
      manual_axes={"x", "y"} (%c: tensor<2x8xf32>, %d: tensor<4xi1>) {
    sdy.return %c, %c : tensor<2x8xf32>, tensor<2x8xf32>
  } {note} : (tensor<12x8xf32>, tensor<4xi1>) -> (tensor<12x8xf32>, tensor<2x16xf32>)
  // CHECK: return %[[R]]#0
  return %0#0 : tensor<12x8xf32>
}

// Shardings inside the body use the axes that are still free.
// CHECK-LABEL: func @nested
func.func @nested(%a: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: manual_axes={"x"} (%arg1: tensor<4xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    // CHECK: sdy.sharding_constraint %arg1 <@mesh, [{"z"}]>
    %1 = sdy.sharding_constraint %b <@mesh, [{"z"}]> : tensor<4xf32>
    // CHECK: manual_axes={"z"} (%arg2: tensor<1xf32>) {
    %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"z"}]>] out_shardings=[<@mesh, [{"z"}]>] manual_axes={"z"} (%c: tensor<1xf32>) {
      sdy.return %c : tensor<1xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %2 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func @dynamic_and_token
func.func @dynamic_and_token(%a: tensor<?x6xf32>, %t: !stablehlo.token) {
  // CHECK: (%arg2: tensor<?x3xf32>, %arg3: !stablehlo.token) {
  %0 = sdy.manual_computation(%a, %t) in_shardings=[<@mesh, [{"z"}, {"x"}]>, <@mesh, []>] out_shardings=[<@mesh, []>] manual_axes={"x", "z"} (%b: tensor<?x3xf32>, %u: !stablehlo.token) {
    sdy.return %u : !stablehlo.token
  } : (tensor<?x6xf32>, !stablehlo.token) -> !stablehlo.token
  return
}
