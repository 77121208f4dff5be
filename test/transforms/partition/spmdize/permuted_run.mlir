// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --spmdize --cse | FileCheck %s --check-prefix=LOCAL

// A grid numbers its devices in order. A device order that transposes axes becomes another order of grid axes; shards
// in any other order are sent to their places at the entry and the exit of a function.
// CHECK: result
// CHECK-COUNT-3: OK
// LOCAL: shard.grid @mesh(shape = 2x4)
sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @by_columns = <["a"=4, "b"=2], device_ids=[0, 4, 1, 5, 2, 6, 3, 7]>
sdy.mesh @reversed = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
// LOCAL-LABEL: func @main
func.func @main(
    %a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@by_columns, [{"a"}, {"b"}]>},
    %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>},
    %c: tensor<7x6xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"a"}, {}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@by_columns, [{"a"}, {"b"}]>},
        tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}, {"a"}]>},
        tensor<7x6xf32> {sdy.sharding = #sdy.sharding<@reversed, [{}, {"b"}]>}) {
  // LOCAL: arith.constant dense<[4, 5, 6, 7, 0, 1, 2, 3]>
  // LOCAL: shard.send %arg2 on @mesh grid_axes = [0, 1] destination = [%[[ROW:.*]], %[[COLUMN:.*]]] :
  // LOCAL: shard.recv %arg2 on @mesh grid_axes = [0, 1] source = [%[[ROW]], %[[COLUMN]]] :
  // LOCAL: %[[SUM:.*]] = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@by_columns, [{"a"}, {"b"}]>]>} : tensor<8x6xf32>
  // LOCAL: shard.send %[[SUM]] on @mesh grid_axes = [0, 1]
  // LOCAL: return %[[SUM]],
  return %0, %0, %c : tensor<8x6xf32>, tensor<8x6xf32>, tensor<7x6xf32>
}

// Calls use the device order of a public function, and the order of the grid for a private function.
// LOCAL-LABEL: func @caller
func.func @caller(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) {
  %0 = func.call @public(%a) {sdy.sharding = #sdy.sharding_per_value<[<@reversed, [{"b"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = func.call @private(%0) {sdy.sharding = #sdy.sharding_per_value<[<@reversed, [{"b"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func @public(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) {
  %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@reversed, [{"b"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// LOCAL-LABEL: func private @private
// LOCAL-NOT: shard.send
func.func private @private(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) {
  %0 = stablehlo.multiply %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@reversed, [{"b"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The op is isomorphic to the op in @public, whose rewrite it replays; the argument is sent to its place before it.
// LOCAL-LABEL: func @again
// LOCAL: %[[ARRIVED:.*]] = shard.recv %arg0
// LOCAL: stablehlo.add %[[ARRIVED]], %[[ARRIVED]]
func.func @again(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}) {
  %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@reversed, [{"b"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
