// RUN: shard-opt %s --convert-sdy-to-shard=partial=true | FileCheck %s

sdy.mesh @mesh = <["data"=2, "model"=4]>

// Only shardings are annotated, once each: open dimensions without axes do not count as a sharding, closed ones do.
// CHECK-LABEL: func.func @partial
// CHECK-NEXT: %[[ROWS:.*]] = shard.sharding @mesh split_axes = {{\[\[}}0]]
// CHECK-NEXT: %[[NONE:.*]] = shard.sharding @mesh split_axes = {{\[\[}}]]
// CHECK-NEXT: %[[A:.*]] = shard.shard %arg0 to %[[ROWS]] : tensor<8x8xf32>
// CHECK-NEXT: %[[B:.*]] = tosa.add %[[A]], %arg1
// CHECK-NEXT: %[[U:.*]] = shard.shard %[[B]] to %[[ROWS]] annotate_for_users : tensor<8x8xf32>
// CHECK-NEXT: %[[C:.*]] = tosa.add %[[U]], %[[B]]
// CHECK-NEXT: %[[R:.*]] = shard.shard %[[C]] to %[[NONE]] annotate_for_users : tensor<8x8xf32>
// CHECK-NEXT: return %[[R]], %[[A]]
func.func @partial(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {?}]>},
                   %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
        tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
  %0 = tosa.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %3 = tosa.add %1, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3, %a : tensor<8x8xf32>, tensor<8x8xf32>
}
