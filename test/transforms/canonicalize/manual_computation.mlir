// RUN: shard-opt %s --canonicalize | FileCheck %s

sdy.mesh @mesh = <["x"=2, "one"=1, "uno"=1]>

// The body uses only the second of three inputs.
// CHECK-LABEL: func @unused_inputs
func.func @unused_inputs(%a: tensor<4xf32>, %b: tensor<6xf32>, %c: tensor<8xf32>) -> tensor<6xf32> {
  // CHECK-NEXT: %[[R:.*]] = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{"x", ?}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg3: tensor<3xf32>) {
  // CHECK-NEXT:   %[[N:.*]] = stablehlo.negate %arg3
  // CHECK-NEXT:   sdy.return %[[N]]
  // CHECK-NEXT: } {note = "kept"} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = sdy.manual_computation(%a, %b, %c) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x", ?}]>, <@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
      manual_axes={"x"} (%d: tensor<4xf32>, %e: tensor<3xf32>, %f: tensor<4xf32>) {
    %1 = stablehlo.negate %e : tensor<3xf32>
    sdy.return %1 : tensor<3xf32>
  } {note = "kept"} : (tensor<4xf32>, tensor<6xf32>, tensor<8xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL: func @empty
func.func @empty() {
  // CHECK-NEXT: return
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"x"} () {
    sdy.return
  } : () -> ()
  return
}

// An unused input is removed first, and then the empty computation.
// CHECK-LABEL: func @becomes_empty
func.func @becomes_empty(%a: tensor<8xf32>) {
  // CHECK-NEXT: return
  sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[] manual_axes={"x"} (%b: tensor<4xf32>) {
    sdy.return
  } : (tensor<8xf32>) -> ()
  return
}

// The product of the sizes of the manual axes is 1.
// CHECK-LABEL: func @manual_on_one_device
func.func @manual_on_one_device(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[S:.*]] = stablehlo.subtract %arg1, %arg0
  // CHECK-NEXT: return %[[S]], %arg1
  %0:2 = sdy.manual_computation(%b, %a) in_shardings=[<@mesh, [{"one", "x"}]>, <@mesh, [{"uno"}]>] out_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>]
      manual_axes={"one", "uno"} (%c: tensor<8xf32>, %d: tensor<8xf32>) {
    %1 = stablehlo.subtract %c, %d : tensor<8xf32>
    sdy.return %1, %c : tensor<8xf32>, tensor<8xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func @manual_on_no_axis
func.func @manual_on_no_axis() {
  // CHECK-NEXT: stablehlo.custom_call @effect()
  // CHECK-NEXT: return
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    stablehlo.custom_call @effect() {has_side_effect = true} : () -> ()
    sdy.return
  } : () -> ()
  return
}

// Without shardings, the sizes of the manual axes are unknown.
// CHECK-LABEL: func @manual_on_unknown_axis
func.func @manual_on_unknown_axis() {
  // CHECK-NEXT: sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"x"} () {
  // CHECK-NEXT:   stablehlo.custom_call @effect()
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"x"} () {
    stablehlo.custom_call @effect() {has_side_effect = true} : () -> ()
    sdy.return
  } : () -> ()
  return
}

// The operation that owns an edge has to stay.
// CHECK-LABEL: func @with_edges
func.func @with_edges(%a: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: sdy.manual_computation(%arg0)
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={} (%b: tensor<8xf32>) {
    %1 = sdy.data_flow_edge %b : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The outer computation stays, and the inner one is inlined.
// CHECK-LABEL: func @nested
func.func @nested(%a: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[R:.*]] = sdy.manual_computation(%arg0)
  // CHECK-NEXT:   %[[N:.*]] = stablehlo.negate %arg1 : tensor<4xf32>
  // CHECK-NEXT:   sdy.return %[[N]]
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[R]]
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    %1 = sdy.manual_computation(%b) in_shardings=[<mesh<["k"=1]>, [{"k"}]>] out_shardings=[<mesh<["k"=1]>, [{}], replicated={"k"}>] manual_axes={"k"} (%c: tensor<4xf32>) {
      %2 = stablehlo.negate %c : tensor<4xf32>
      sdy.return %2 : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A computation with unused results is erased if it has no effects, with the operations that only it uses.
// CHECK-LABEL: func @unused_results
// CHECK-NEXT: sdy.manual_computation(%arg0)
// CHECK-NEXT:   stablehlo.custom_call @log
// CHECK-NEXT:   sdy.return
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @unused_results(%a: tensor<4xf32>) {
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
    %3 = stablehlo.negate %b : tensor<2xf32>
    sdy.return %3 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %2 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
    stablehlo.custom_call @log(%b) {has_side_effect = true} : (tensor<2xf32>) -> ()
    sdy.return %b : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}
