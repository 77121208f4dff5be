// RUN: shard-opt %s --shard-drop-callbacks | FileCheck %s

// CHECK-LABEL: func.func @printed
// CHECK-NOT: custom_call
// CHECK: %[[R:.*]] = stablehlo.add
// CHECK: return %[[R]]
func.func @printed(%x: tensor<8xf32>) -> tensor<8xf32> {
  stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true} : (tensor<8xf32>) -> ()
  %0 = stablehlo.add %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @in_order(%arg0: !stablehlo.token, %arg1: tensor<f32>)
// CHECK-NEXT: return %arg0
func.func @in_order(%t: !stablehlo.token, %x: tensor<f32>) -> !stablehlo.token {
  %0 = stablehlo.custom_call @xla_ffi_python_gpu_callback(%t, %x) {has_side_effect = true}
    : (!stablehlo.token, tensor<f32>) -> !stablehlo.token
  %1 = stablehlo.custom_call @xla_python_cpu_callback(%0, %x) {has_side_effect = true}
    : (!stablehlo.token, tensor<f32>) -> !stablehlo.token
  return %1 : !stablehlo.token
}

// CHECK-LABEL: func.func @makes_a_token
// CHECK-NEXT: %[[TOKEN:.*]] = stablehlo.create_token
// CHECK-NEXT: return %[[TOKEN]]
func.func @makes_a_token(%x: tensor<f32>) -> !stablehlo.token {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true}
    : (tensor<f32>) -> !stablehlo.token
  return %0 : !stablehlo.token
}

// Callbacks with results stay, and so do calls of other libraries.
// CHECK-LABEL: func.func @kept
// CHECK: custom_call @xla_ffi_python_cpu_callback
// CHECK: custom_call @a_library
func.func @kept(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) : (tensor<f32>) -> tensor<f32>
  stablehlo.custom_call @a_library(%0) {has_side_effect = true} : (tensor<f32>) -> ()
  return %0 : tensor<f32>
}
