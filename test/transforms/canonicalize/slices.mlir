// RUN: shard-opt %s -canonicalize | FileCheck %s
// RUN: shard-opt %s -canonicalize=disable-patterns=shard-slices | FileCheck %s --check-prefix=DISABLED

sdy.mesh @mesh = <["x"=4]>

// A token shift has one shard size before and after.
// CHECK-LABEL: @shift
// CHECK-NEXT: %[[PAD:.*]] = stablehlo.pad %arg0, %arg1, low = [1, 0], high = [-1, 2], interior = [0, 1]
// CHECK-SAME: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
// CHECK-NEXT: return %[[PAD]]
// DISABLED-LABEL: @shift
// DISABLED: stablehlo.slice
func.func @shift(%a: tensor<8x3xf32>, %zero: tensor<f32>) -> tensor<8x7xf32> {
  %0 = stablehlo.pad %a, %zero, low = [1, 0], high = [0, 2], interior = [0, 1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<9x7xf32>
  %1 = stablehlo.slice %0 [0:8, 0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<9x7xf32>) -> tensor<8x7xf32>
  return %1 : tensor<8x7xf32>
}

// CHECK-LABEL: @both_ends
// CHECK-NEXT: stablehlo.pad %arg0, %arg1, low = [-1], high = [1], interior = [0] {{.*}} -> tensor<8xf32>
// CHECK-NEXT: return
func.func @both_ends(%a: tensor<8xf32>, %zero: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.pad %a, %zero, low = [2], high = [3], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<13xf32>
  %1 = stablehlo.slice %0 [3:11] : (tensor<13xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Unchanged: only padding, strides, padding between elements, other users, and a pad with a sharding of its own.
// CHECK-LABEL: @unchanged
// CHECK-COUNT-6: stablehlo.slice
func.func @unchanged(%a: tensor<8xf32>, %zero: tensor<f32>) -> (tensor<2xf32>, tensor<3xf32>, tensor<6xf32>, tensor<10xf32>, tensor<8xf32>, tensor<9xf32>, tensor<8xf32>) {
  %0 = stablehlo.pad %a, %zero, low = [2], high = [3], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<13xf32>
  %1 = stablehlo.slice %0 [0:2] : (tensor<13xf32>) -> tensor<2xf32>
  %2 = stablehlo.pad %a, %zero, low = [2], high = [3], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<13xf32>
  %3 = stablehlo.slice %2 [10:13] : (tensor<13xf32>) -> tensor<3xf32>
  %4 = stablehlo.pad %a, %zero, low = [1], high = [3], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<12xf32>
  %5 = stablehlo.slice %4 [0:12:2] : (tensor<12xf32>) -> tensor<6xf32>
  %6 = stablehlo.pad %a, %zero, low = [1], high = [0], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
  %7 = stablehlo.slice %6 [0:10] : (tensor<16xf32>) -> tensor<10xf32>
  %8 = stablehlo.pad %a, %zero, low = [1], high = [0], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %9 = stablehlo.slice %8 [0:8] : (tensor<9xf32>) -> tensor<8xf32>
  %10 = stablehlo.pad %a, %zero, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %11 = stablehlo.slice %10 [0:8] : (tensor<9xf32>) -> tensor<8xf32>
  return %1, %3, %5, %7, %9, %8, %11 : tensor<2xf32>, tensor<3xf32>, tensor<6xf32>, tensor<10xf32>, tensor<8xf32>, tensor<9xf32>, tensor<8xf32>
}
