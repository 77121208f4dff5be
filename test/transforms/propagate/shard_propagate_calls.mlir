// RUN: shard-opt %s --split-input-file --shard-propagate | FileCheck %s
// RUN: shard-opt %s --split-input-file --spmd-pipeline --shard-communication-report 2>&1 >/dev/null | FileCheck %s --check-prefix=BYTES
// RUN: shard-opt %s --split-input-file --spmd-pipeline=collectives=stablehlo --shard-communication-report 2>&1 >/dev/null | FileCheck %s --check-prefix=BYTES

// A constraint in a function does not stop propagation: the weights are sharded outside and keep their sharding.
sdy.mesh @mesh = <["dp"=2, "tp"=4]>

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general %arg2, %arg1, {{.*}}[{"dp"}, {"tp"}]
// CHECK: stablehlo.dot_general {{.*}}[{"dp"}, {}]
// CHECK-NOT: func.func
// BYTES: all_reduce
// BYTES: 1 collective {{.*}}768 B
func.func @main(%down: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>},
                %up: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>},
                %x: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}) -> tensor<8x32xf32> {
  %0 = call @layer(%x, %up, %down) : (tensor<8x32xf32>, tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

func.func private @layer(%x: tensor<8x32xf32>, %up: tensor<32x64xf32>, %down: tensor<64x32xf32>) -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
  %1 = stablehlo.tanh %0 : tensor<8x64xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %3 = stablehlo.add %x, %2 : tensor<8x32xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{"dp"}, {}]> : tensor<8x32xf32>
  return %4 : tensor<8x32xf32>
}

// -----

// The same with calls that stay: two calls agree and share a function, and a third has its own function.
sdy.mesh @mesh = <["dp"=2, "tp"=4]>

// CHECK-LABEL: func.func @main
// CHECK: %[[FIRST:.*]] = call @layer(%arg2, %arg1, %arg0) {no_inline, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"dp"}, {}]>]>}
// CHECK: %[[SECOND:.*]] = call @layer(%[[FIRST]], %arg1, %arg0) {no_inline,
// CHECK: call @[[OTHER:.*]](%[[SECOND]], %arg4, %arg3) {no_inline, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"dp"}, {}]>]>}
// CHECK: func.func private @layer(%arg0: {{.*}}[{"dp"}, {}]>}, %arg1: {{.*}}[{}, {"tp"}]>}, %arg2: {{.*}}[{"tp"}, {}]>}) -> {{.*}}[{"dp"}, {}]>})
// CHECK: stablehlo.tanh {{.*}}[{"dp"}, {"tp"}]
// CHECK: func.func private @[[OTHER]](%arg0: {{.*}}[{"dp"}, {}]>}, %arg1: {{.*}}[{}, {}]>}, %arg2: {{.*}}[{}, {}]>})
// CHECK: stablehlo.tanh {{.*}}[{"dp"}, {}]
// CHECK-NOT: func.func private @layer
// BYTES: all_reduce
// BYTES: 1 collective {{.*}}768 B
func.func @main(%down: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>},
                %up: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>},
                %x: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>},
                %down_whole: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
                %up_whole: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x32xf32> {
  %0 = call @layer(%x, %up, %down) : (tensor<8x32xf32>, tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %1 = call @layer(%0, %up, %down) : (tensor<8x32xf32>, tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %2 = call @layer(%1, %up_whole, %down_whole) : (tensor<8x32xf32>, tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func private @layer(%x: tensor<8x32xf32>, %up: tensor<32x64xf32>, %down: tensor<64x32xf32>) -> tensor<8x32xf32> attributes {no_inline} {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
  %1 = stablehlo.tanh %0 : tensor<8x64xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %3 = stablehlo.add %x, %2 : tensor<8x32xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{"dp"}, {}]> : tensor<8x32xf32>
  return %4 : tensor<8x32xf32>
}

// -----

// A declared function keeps its declared shardings, and the operations around its calls follow them.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
// BYTES: no collectives
func.func private @kernel(tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.negate %a : tensor<8x4xf32>
  %1 = call @kernel(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.negate %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
