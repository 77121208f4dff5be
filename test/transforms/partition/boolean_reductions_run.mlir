// RUN: shard-run %s | FileCheck %s
// RUN: shard-run %s --collectives=stablehlo | FileCheck %s

// Reductions of booleans along a dimension in uneven shards, on both targets.
// CHECK:      0 {{.*}}OK
// CHECK-NEXT: 1 {{.*}}OK
// CHECK-NEXT: 2 {{.*}}OK
// CHECK-NEXT: 3 {{.*}}OK
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<16x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>) {
  %no = stablehlo.constant dense<false> : tensor<i1>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %few = stablehlo.constant dense<1.5> : tensor<16x5xf32>
  %most = stablehlo.constant dense<-1.0> : tensor<16x5xf32>
  %0 = stablehlo.compare GT, %a, %few : (tensor<16x5xf32>, tensor<16x5xf32>) -> tensor<16x5xi1>
  %1 = stablehlo.compare GT, %a, %most : (tensor<16x5xf32>, tensor<16x5xf32>) -> tensor<16x5xi1>
  %2 = stablehlo.reduce(%0 init: %no) applies stablehlo.maximum across dimensions = [1] : (tensor<16x5xi1>, tensor<i1>) -> tensor<16xi1>
  %3 = stablehlo.reduce(%1 init: %yes) applies stablehlo.minimum across dimensions = [1] : (tensor<16x5xi1>, tensor<i1>) -> tensor<16xi1>
  %4 = stablehlo.reduce(%0 init: %no) applies stablehlo.or across dimensions = [1] : (tensor<16x5xi1>, tensor<i1>) -> tensor<16xi1>
  %5 = stablehlo.reduce(%1 init: %yes) applies stablehlo.and across dimensions = [1] : (tensor<16x5xi1>, tensor<i1>) -> tensor<16xi1>
  return %2, %3, %4, %5 : tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>
}
