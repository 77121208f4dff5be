// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s

// Arguments on devices in another order are brought into the order of the grid, except for unused arguments.
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @reversed = <["x"=2], device_ids=[1, 0]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<4xf32>, %arg1: tensor<4xf32>
// CHECK-NOT: %arg0
// CHECK: shard.send %arg1
// CHECK: %[[B:.*]] = shard.recv %arg1
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[B]], %arg2
// CHECK-NOT: shard.recv %arg
// CHECK: return
func.func @main(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"x"}]>},
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"x"}]>},
    %c: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %b, %c {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
