// RUN: shard-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(shard-declare-partial-sums))' --verify-diagnostics | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A contraction along a sharded dimension leaves partial sums, whether or not its sharding declares them.
// CHECK-LABEL: func @contraction(
// CHECK: stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}], unreduced={"y"}>]>}
// CHECK: sdy.all_reduce {"y"}
func.func @contraction(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// CHECK-LABEL: func @maximum(
// CHECK: stablehlo.reduce
// CHECK-SAME: unreduced=max{"y"}
func.func @maximum(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %z: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = sdy.reduce_scatter max [{"y"}] %0 out_sharding=<@mesh, [{"y"}]> : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// An op that already declares them is not changed.
// CHECK-LABEL: func @declared(
// CHECK-NEXT: sdy.replicated_to_unreduced {"y"} %arg0 out_sharding=<@mesh, [{"x"}], unreduced={"y"}>
// CHECK-NEXT: sdy.all_reduce {"y"}
func.func @declared(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<4xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @replicated(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  // expected-error @+1 {{'sdy.all_reduce' op reduces along "y", but its operand is not unreduced there: declare the operand unreduced={"y"} if it is a partial value, or remove the reduction}}
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @scattered(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'sdy.reduce_scatter' op reduces along "y", but its operand is not unreduced there}}
  %0 = sdy.reduce_scatter [{"y"}] %a out_sharding=<@mesh, [{"y"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Partial values have a single kind of reduction.
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @another_kind(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %z: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @+1 {{'sdy.all_reduce' op reduces by sum along "y", but the partial values of 'stablehlo.reduce' require max}}
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{}]> : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// In a manual computation, devices may hold different values along the manual axes, which sdy cannot express.
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @manual(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%b: tensor<2x4xf32>) {
    // expected-error @+1 {{'sdy.all_reduce' op reduces along "y", but its operand is not unreduced there}}
    %1 = sdy.all_reduce {"y"} %b out_sharding=<@mesh, [{}, {}]> : tensor<2x4xf32>
    sdy.return %1 : tensor<2x4xf32>
  } : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @declared_only(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.negate' op result 0 is declared unreduced along "y", but the op has no partial operands or results there: use sdy.replicated_to_unreduced for a replicated value}}
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}], unreduced={"y"}>]>} : tensor<4xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
  return %1 : tensor<4xf32>
}
