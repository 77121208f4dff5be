// RUN: shard-opt %examples/perceptron_linalg.mlir --shard-propagate | FileCheck %s --check-prefixes=ALL,LINALG
// RUN: shard-opt %examples/perceptron_shard.mlir --shard-propagate | FileCheck %s --check-prefixes=ALL,SHARD
// RUN: shard-opt %examples/perceptron_stablehlo.mlir --shard-propagate | FileCheck %s --check-prefixes=ALL,STABLEHLO
// RUN: shard-opt %s --shard-propagate | FileCheck %s

// In each form, the biases and the second weights take the axis of the hidden layer, and the output that of the batch.

// LINALG: sdy.mesh @mesh = <["data"=2, "model"=2]>
// LINALG: %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}]>}, %arg3: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})

// SHARD: sdy.mesh @grid = <["axis_0"=2, "axis_1"=2]>
// SHARD: %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_1"}]>}, %arg3: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_1"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_0"}, {}]>})

// STABLEHLO: sdy.mesh @mesh = <["data"=2, "model"=2]>
// STABLEHLO: -> (tensor<8x8xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})

// ALL-NOT: shard.
// ALL-NOT: ?

// Calls are inlined, so shardings propagate through them.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// CHECK-NEXT: stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NOT: func.func
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = call @relu(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @relu(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Propagation through regions, by priorities, and within groups.
// CHECK-LABEL: func.func @regions
// CHECK: scf.for
// CHECK: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NOT: sdy.data_flow_edge
// CHECK-NOT: sdy.sharding_group
func.func @regions(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1]>}, %b: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  sdy.sharding_group %b group_id = 0 : tensor<8xf32>
  %0 = scf.for %i = %zero to %n step %one iter_args(%c = %b) -> (tensor<8xf32>) {
    %1 = stablehlo.add %c, %a : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  sdy.sharding_group %0 group_id = 0 : tensor<8xf32>
  return %0, %b : tensor<8xf32>, tensor<8xf32>
}
