// RUN: shard-opt %s --shard-split-top-k --verify-each | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=LOCAL
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo | FileCheck %s --check-prefix=LOCAL

sdy.mesh @mesh = <["d"=2, "s"=4]>

// Each shard has 8 candidates, and the positions of those that are taken are those in a shard, plus 8000 for each shard
// before it.
// CHECK-LABEL: func @vocabulary
// CHECK:      %[[CUT:.*]] = stablehlo.reshape %arg0 {{.*}}<@mesh, [{"d"}, {"s"}, {}]>{{.*}} -> tensor<16x4x8000xf32>
// CHECK:      %[[VALUES:.*]], %[[PLACES:.*]] = chlo.top_k(%[[CUT]], k = 8) {{.*}}<@mesh, [{"d"}, {"s"}, {}]>, <@mesh, [{"d"}, {"s"}, {}]>{{.*}} -> (tensor<16x4x8xf32>, tensor<16x4x8xi32>)
// CHECK:      sdy.reshard %[[VALUES]] <@mesh, [{"d"}, {}, {}]>
// CHECK:      %[[ALL_VALUES:.*]] = stablehlo.reshape {{.*}} -> tensor<16x32xf32>
// CHECK:      sdy.reshard %[[PLACES]] <@mesh, [{"d"}, {}, {}]>
// CHECK:      %[[ALL_PLACES:.*]] = stablehlo.reshape {{.*}} -> tensor<16x32xi32>
// CHECK:      %[[LAST:.*]], %[[CHOSEN:.*]] = chlo.top_k(%[[ALL_VALUES]], k = 8) {{.*}}<@mesh, [{"d"}, {}]>, <@mesh, [{"d"}, {}]>
// CHECK:      %[[STARTS:.*]] = stablehlo.reshape %[[CHOSEN]] {{.*}} -> tensor<16x8x1xi32>
// CHECK:      %[[INSIDE:.*]] = "stablehlo.gather"(%[[ALL_PLACES]], %[[STARTS]]) {{.*}}collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>
// CHECK:      %[[SIZE:.*]] = stablehlo.constant dense<8>
// CHECK:      %[[SHARD:.*]] = stablehlo.divide %[[CHOSEN]], %[[SIZE]]
// CHECK:      %[[LENGTH:.*]] = stablehlo.constant dense<8000>
// CHECK:      %[[BEFORE:.*]] = stablehlo.multiply %[[SHARD]], %[[LENGTH]]
// CHECK:      %[[SUM:.*]] = stablehlo.add %[[BEFORE]], %[[INSIDE]]
// CHECK:      return %[[LAST]], %[[SUM]]
// LOCAL-LABEL: func @vocabulary
// LOCAL: chlo.top_k(%{{.*}}, k = 8) : tensor<8x1x8000xf32>
// LOCAL: chlo.top_k(%{{.*}}, k = 8) : tensor<8x32xf32>
func.func @vocabulary(%logits: tensor<16x32000xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {"s"}]>})
    -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) {
  %values, %places = chlo.top_k(%logits, k = 8) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>, <@mesh, [{"d"}, {}]>]>} : tensor<16x32000xf32> -> (tensor<16x8xf32>, tensor<16x8xi32>)
  return %values, %places : tensor<16x8xf32>, tensor<16x8xi32>
}

// The vocabulary is merged with the beams: each shard of each beam has 4 candidates.
// CHECK-LABEL: func @beams
// CHECK-NOT:  tensor<16x128000xf32>
// CHECK:      stablehlo.reshape %arg0 {{.*}}<@mesh, [{"d"}, {}, {"s"}, {}]>{{.*}} -> tensor<16x4x4x8000xf32>
// CHECK:      chlo.top_k({{.*}}, k = 4) {{.*}} -> (tensor<16x4x4x4xf32>, tensor<16x4x4x4xi32>)
// CHECK:      chlo.top_k({{.*}}, k = 4) {{.*}} : tensor<16x64xf32>
// CHECK:      stablehlo.constant dense<4>
// CHECK:      stablehlo.constant dense<8000>
// LOCAL-LABEL: func @beams
// LOCAL: chlo.top_k(%{{.*}}, k = 4) : tensor<8x4x1x8000xf32>
// LOCAL: chlo.top_k(%{{.*}}, k = 4) : tensor<8x64xf32>
func.func @beams(%scores: tensor<16x4x32000xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}, {"s"}]>}) -> (tensor<16x4xf32>, tensor<16x4xi32>) {
  %0 = stablehlo.reshape %scores {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>]>} : (tensor<16x4x32000xf32>) -> tensor<16x128000xf32>
  %values, %places = chlo.top_k(%0, k = 4) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>, <@mesh, [{"d"}, {}]>]>} : tensor<16x128000xf32> -> (tensor<16x4xf32>, tensor<16x4xi32>)
  return %values, %places : tensor<16x4xf32>, tensor<16x4xi32>
}

// Uneven shards are padded with the least number, after all elements.
// CHECK-LABEL: func @uneven
// CHECK:      %[[LEAST:.*]] = stablehlo.constant dense<-32768> : tensor<i16>
// CHECK:      stablehlo.pad %{{.*}}, %[[LEAST]], low = [0], high = [3]
// CHECK:      chlo.top_k({{.*}}, k = 2) {{.*}} : tensor<4x1001xi16>
func.func @uneven(%a: tensor<4001xi16> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}]>}) -> (tensor<2xi16>, tensor<2xi32>) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"s"}]>]>} : tensor<4001xi16>
  %values, %places = chlo.top_k(%0, k = 2) : tensor<4001xi16> -> (tensor<2xi16>, tensor<2xi32>)
  return %values, %places : tensor<2xi16>, tensor<2xi32>
}

// Unchanged: more candidates than elements of a shard, a dimension that is not sharded, and padding between elements of
// rows that are merged.
// CHECK-LABEL: func @others
// CHECK-NOT:  stablehlo.gather
// CHECK:      return
func.func @others(%a: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {"s"}]>}, %b: tensor<16x32000xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>},
                  %c: tensor<3x4001xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"s"}]>})
    -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<2xf32>) {
  %0:2 = chlo.top_k(%a, k = 8) : tensor<16x32xf32> -> (tensor<16x8xf32>, tensor<16x8xi32>)
  %1:2 = chlo.top_k(%b, k = 8) : tensor<16x32000xf32> -> (tensor<16x8xf32>, tensor<16x8xi32>)
  %2 = stablehlo.reshape %c : (tensor<3x4001xf32>) -> tensor<12003xf32>
  %3:2 = chlo.top_k(%2, k = 2) : tensor<12003xf32> -> (tensor<2xf32>, tensor<2xi32>)
  return %0#0, %1#0, %3#0 : tensor<16x8xf32>, tensor<16x8xf32>, tensor<2xf32>
}
