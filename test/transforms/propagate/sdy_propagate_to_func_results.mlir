// RUN: shard-opt %s --sdy-propagate-to-func-results | FileCheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK: func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// CHECK: func.func private @callee
// CHECK-SAME: -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<4xf32> {jax.note}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
func.func private @callee(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, tensor<4xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<4xf32>) {
  %0 = stablehlo.abs %a : tensor<4xf32>
  %1 = sdy.named_computation<"f">(%0) out_shardings=[<@mesh, [{}]>] (%arg: tensor<4xf32>) {
    sdy.return %arg : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %a, %0, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK: func.func private @declared(tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
func.func private @declared(tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
