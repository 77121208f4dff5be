// RUN: shard-opt %examples/perceptron_linalg.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID22
// RUN: shard-opt %examples/perceptron_shard.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID22
// RUN: shard-opt %examples/perceptron_stablehlo.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID22
// RUN: shard-opt %S/../Inputs/perceptron_linalg_4.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID4
// RUN: shard-opt %S/../Inputs/perceptron_shard_4.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID4
// RUN: shard-opt %S/../Inputs/perceptron_stablehlo_4.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID4
// RUN: shard-opt %S/../Inputs/perceptron_linalg_2.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID2
// RUN: shard-opt %S/../Inputs/perceptron_shard_2.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID2
// RUN: shard-opt %S/../Inputs/perceptron_stablehlo_2.mlir --shard-propagate --shard-spmdize | FileCheck %s --check-prefixes=GRID2
// RUN: shard-opt %examples/perceptron_stablehlo.mlir --shard-propagate --shard-spmdize='collectives=stablehlo' | FileCheck %s --check-prefixes=HLO
// RUN: shard-opt %s --shard-spmdize | FileCheck %s

// HLO-NOT: sdy
// HLO: @main(%arg0: tensor<4x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<16xf32>, %arg3: tensor<16x8xf32>) -> {{\(?}}tensor<4x8xf32>
// HLO-NOT: stablehlo.all_gather
// HLO: %[[R:.*]] = "stablehlo.all_reduce"(%{{.*}}) {{.*}}replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// HLO: return %[[R]]

// GRID22-NOT: sdy
// GRID22: shard.grid @{{.*}}(shape = 2x2)
// GRID22: @main(%arg0: tensor<4x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<16xf32>, %arg3: tensor<16x8xf32>) -> {{\(?}}tensor<4x8xf32>
// GRID22-NOT: shard.all_gather
// GRID22: %[[R:.*]] = shard.all_reduce %{{.*}} grid_axes = [1] : tensor<4x8xf32> -> tensor<4x8xf32>
// GRID22-NEXT: return %[[R]]

// GRID4: shard.grid @{{.*}}(shape = 4)
// GRID4: @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8x8xf32>) -> {{\(?}}tensor<8x8xf32>
// GRID4-NOT: shard.all_gather
// GRID4: %[[R:.*]] = shard.all_reduce %{{.*}} grid_axes = [0] : tensor<8x8xf32> -> tensor<8x8xf32>
// GRID4-NEXT: return %[[R]]

// GRID2: shard.grid @{{.*}}(shape = 2)
// GRID2: @main(%arg0: tensor<4x16xf32>, %arg1: tensor<16x32xf32>, %arg2: tensor<32xf32>, %arg3: tensor<32x8xf32>) -> {{\(?}}tensor<8x8xf32>
// GRID2-NOT: shard.all_reduce
// GRID2: %[[R:.*]] = shard.all_gather %{{.*}} grid_axes = [0] gather_axis = 0 : tensor<4x8xf32> -> tensor<8x8xf32>
// GRID2-NEXT: return %[[R]]

// Two ops that need the same shards share the collective.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @shared
// CHECK-NEXT: %[[A:.*]] = shard.all_gather %arg0
// CHECK-NEXT: arith.negf %[[A]]
// CHECK-NEXT: arith.addf %[[A]]
// CHECK-NOT: shard.all_gather
func.func @shared(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
  %1 = arith.negf %0 : tensor<8xf32>
  %2 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
  %3 = arith.addf %2, %b : tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}
