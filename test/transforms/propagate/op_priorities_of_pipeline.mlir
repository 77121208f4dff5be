// RUN: shard-opt %s --sdy-propagation-pipeline | FileCheck %s --check-prefix=ROWS
// RUN: shard-opt %s --sdy-propagation-pipeline='op-priorities=stablehlo.multiply' | FileCheck %s --check-prefix=COLUMNS
// RUN: shard-opt %s --sdy-propagation-pipeline='op-priorities={chlo.erf,stablehlo.multiply},stablehlo.negate' | FileCheck %s --check-prefix=COLUMNS

// The pipeline passes the order of ops to propagation: the axis can shard the product by rows or by columns, depending
// on the op that propagates first, which without an order is the first op of the text.

// ROWS: stablehlo.negate %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
// ROWS: stablehlo.multiply %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
// COLUMNS: stablehlo.negate %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
// COLUMNS: stablehlo.multiply %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
sdy.mesh @mesh = <["x"=2]>

func.func @main(
    %rows: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>},
    %columns: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %rows : tensor<8x8xf32>
  %1 = stablehlo.multiply %0, %columns : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
