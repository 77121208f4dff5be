// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-run %S/Inputs/manual_collective.mlir | FileCheck %s --check-prefix=COLLECTIVE
// RUN: shard-run --engine=pjrt %S/Inputs/manual_collective.mlir | FileCheck %s --check-prefix=COLLECTIVE
// RUN: not shard-run --engine=pjrt %S/Inputs/manual_stranger.mlir 2>&1 | FileCheck %s --check-prefix=STRANGER

// On one device the body is computed on one shard after the other: six of the outer computation, two of the inner.
// CHECK: 0       tensor<4x6xf32>  <@mesh, [{"x"}, {"y"}]> {{.*}} OK
// CHECK: 1       tensor<4x6xf32>  <@mesh, [{"x"}, {}]> {{.*}} OK

// COLLECTIVE: 0       tensor<4x3xf32>  <@mesh, [{"x"}, {}]> {{.*}} OK

// STRANGER: manual_stranger.mlir:5:10: error: 'stablehlo.custom_call' in a manual computation cannot run on one device
// STRANGER: shard-run: error: the unsharded program cannot be run for comparison; --no-verify disables the comparison

sdy.mesh @mesh = <["x"=2, "y"=3]>

func.func @main(%a: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>]
      manual_axes={"x", "y"} (%b: tensor<2x2xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sums = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
    %wide = stablehlo.broadcast_in_dim %sums, dims = [0] : (tensor<2xf32>) -> tensor<2x2xf32>
    %c = stablehlo.multiply %wide, %b : tensor<2x2xf32>
    sdy.return %c : tensor<2x2xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
      manual_axes={"x"} (%b: tensor<2x6xf32>) {
    %2 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>]
        manual_axes={"y"} (%c: tensor<2x2xf32>) {
      %places = stablehlo.iota dim = 1 : tensor<2x2xf32>
      %d = stablehlo.add %c, %places : tensor<2x2xf32>
      sdy.return %d : tensor<2x2xf32>
    } : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %e = stablehlo.reverse %2, dims = [0, 1] : tensor<2x6xf32>
    sdy.return %e : tensor<2x6xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}
