// RUN: shard-opt %s --split-input-file --shard-exchange-between-meshes | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-exchange-between-meshes --shard-exchange-between-meshes | FileCheck %s

sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=2], device_ids=[2, 3]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@b, [{}, {"x"}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@b, [{}, {}]>},
// CHECK-SAME: tensor<8x4xf32>)
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}, {}]>}, %arg1: tensor<8x4xf32>)
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@b, [{}, {"x"}]>}, tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: %[[B:.*]] = sdy.reshard %arg0 <@b, [{"x"}, {}]> {mlir_shard.direct_exchange, mlir_shard.source = #sdy.sharding<@a, [{"x"}, {}]>}
  // CHECK-NEXT: %[[ADD:.*]] = stablehlo.add %[[B]], %[[B]]
  // A tensor that all devices hold needs no exchange.
  // CHECK-NEXT: sdy.sharding_constraint %arg1 <@b, [{"x"}, {}]>
  // CHECK-NEXT: %[[RETURNED:.*]] = sdy.reshard %arg0 <@b, [{}, {"x"}]> {mlir_shard.direct_exchange, mlir_shard.source = #sdy.sharding<@a, [{"x"}, {}]>}
  // CHECK-NEXT: return %[[RETURNED]], %[[ADD]], %arg1
  %0 = sdy.sharding_constraint %arg0 <@b, [{"x"}, {}]> : tensor<8x4xf32>
  %1 = stablehlo.add %0, %0 : tensor<8x4xf32>
  %2 = sdy.sharding_constraint %arg1 <@b, [{"x"}, {}]> : tensor<8x4xf32>
  return %arg0, %1, %arg1 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Four devices receive a quarter each from two devices that hold the entire tensor, and gather it.
sdy.mesh @two = <["x"=2]>
sdy.mesh @others = <["x"=2], device_ids=[2, 3]>
sdy.mesh @four = <["x"=4], device_ids=[4, 5, 6, 7]>
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<1048576xf32> {sdy.sharding = #sdy.sharding<@two, [{}]>}) -> tensor<1048576xf32> {
  // CHECK-NEXT: %[[PART:.*]] = sdy.reshard %arg0 <@four, [{"x"}]> {mlir_shard.direct_exchange, mlir_shard.source = #sdy.sharding<@two, [{}]>}
  // CHECK-NEXT: sdy.reshard %[[PART]] <@four, [{}]> :
  %0 = sdy.reshard %arg0 <@four, [{}]> : tensor<1048576xf32>
  return %0 : tensor<1048576xf32>
}

// -----

// Six of eight devices are not a part of a grid, so only an exchange can reach them.
sdy.mesh @training = <["x"=8]>
sdy.mesh @serving = <["x"=6]>
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@training, [{"x"}, {}]>}) -> tensor<24x12xf32> {
  // CHECK-NEXT: sdy.reshard %arg0 <@serving, [{}, {"x"}]> {mlir_shard.direct_exchange, mlir_shard.source = #sdy.sharding<@training, [{"x"}, {}]>}
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@serving, [{}, {"x"}]> : tensor<24x12xf32>
  return %0 : tensor<24x12xf32>
}
