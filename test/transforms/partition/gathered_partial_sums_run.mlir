// RUN: shard-opt %s --spmdize | FileCheck %s
// RUN: shard-opt %s --spmdize=collectives=stablehlo | FileCheck %s --check-prefix=STABLEHLO
// RUN: shard-run %s --pipeline="sdy-basic-propagate;spmdize" | FileCheck %s --check-prefix=RESULT
// RUN: shard-run %s --pipeline="sdy-basic-propagate;spmdize{collectives=stablehlo}" | FileCheck %s --check-prefix=RESULT

// The slice is local if its result stays partial along "c". The collective after it gathers along "b" only, but its
// result is sharded along "c", so the partial sums are scattered there.

// CHECK: %[[SCATTERED:.*]] = shard.reduce_scatter %{{.*}} grid_axes = [1] scatter_dim = 1
// CHECK: shard.all_gather %[[SCATTERED]] {{.*}} grid_axes = [0] gather_axis = 0
// STABLEHLO: stablehlo.reduce_scatter
// STABLEHLO: stablehlo.all_gather
// RESULT: @main on 4 ranks, compared with it on one, without sharding:
// RESULT: 0 {{.*}} OK
sdy.mesh @mesh = <["b"=2, "c"=2]>
func.func @main(%a: tensor<24x20xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"c"}]>}) -> (tensor<24x2xf64> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"c"}]>}) {
  %0 = stablehlo.slice %a [0:24, 1:4:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {"c"}]>]>} : (tensor<24x20xf64>) -> tensor<24x2xf64>
  %1 = sdy.all_gather [{"b"}, {}] %0 out_sharding=<@mesh, [{}, {"c"}]> : tensor<24x2xf64>
  return %1 : tensor<24x2xf64>
}
