// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-run %s | FileCheck %s

// One device computes on tensors that are sharded over all devices, and takes and returns tensors of its own.
// CHECK: result
// CHECK-COUNT-2: OK
sdy.mesh @m = <["a"=2, "b"=2]>
sdy.mesh @last = <[], device_ids=[3]>
func.func @main(%a: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>},
                %b: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@last, []>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"b"}, {?}]>},
        tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@last, []>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@last, []>]>} : tensor<12x6xf32>
  %1 = stablehlo.multiply %0, %a : tensor<12x6xf32>
  %2 = stablehlo.multiply %0, %b {sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[1]>, []>]>} : tensor<12x6xf32>
  return %1, %2 : tensor<12x6xf32>, tensor<12x6xf32>
}
