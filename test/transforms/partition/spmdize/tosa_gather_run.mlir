// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s --check-prefix=LOCAL

// Rows of a table with sharded rows: each device takes its own rows, and zeros for the others.
// CHECK: result
// CHECK-COUNT-2: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>
// LOCAL-LABEL: func.func @main(%arg0: tensor<1x32x8xf32>, %arg1: tensor<1x3xi32>, %arg2: tensor<2x8x4xi32>, %arg3: tensor<2x5xi32>)
// LOCAL-NOT: all_gather
// LOCAL: %[[LOCAL:.*]] = arith.subi %arg1
// LOCAL: %[[OWN:.*]] = arith.cmpi ult, %[[LOCAL]]
// LOCAL: %[[INDEX:.*]] = arith.select %[[OWN]], %[[LOCAL]]
// LOCAL: %[[ROWS:.*]] = tosa.gather %arg0, %[[INDEX]]
// LOCAL: %[[SUMMAND:.*]] = tosa.select %{{.*}}, %[[ROWS]]
// LOCAL: shard.all_reduce %[[SUMMAND]] on @mesh grid_axes = [1]
// LOCAL-NOT: all_gather
// LOCAL: return
func.func @main(%table: tensor<1x64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {}]>},
                %rows: tensor<1x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %tables: tensor<4x16x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}, {}]>},
                %indices: tensor<4x5xi32>) -> (tensor<1x6x8xf32>, tensor<4x5x4xi32>) {
  %0 = tosa.gather %table, %rows : (tensor<1x64x8xf32>, tensor<1x6xi32>) -> tensor<1x6x8xf32>
  %1 = tosa.gather %tables, %indices : (tensor<4x16x4xi32>, tensor<4x5xi32>) -> tensor<4x5x4xi32>
  return %0, %1 : tensor<1x6x8xf32>, tensor<4x5x4xi32>
}
