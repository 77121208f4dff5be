// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// Tensors without elements, sharded along empty dimensions, and complex numbers, on both engines.
// CHECK: compared with it on one, without sharding:
// CHECK: 0       tensor<0x6xf32> {{.*}}OK
// CHECK: 1       tensor<6xf32> {{.*}}OK
// CHECK: 2       tensor<7x6xf32> {{.*}}OK
// CHECK: 3       tensor<8x6xcomplex<f32>> {{.*}}OK

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<0x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %c: tensor<8x6xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<0x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}, tensor<6xf32>, tensor<7x6xf32>, tensor<8x6xcomplex<f32>>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %a [8:8, 0:6] : (tensor<8x6xf32>) -> tensor<0x6xf32>
  %1 = stablehlo.add %0, %b : tensor<0x6xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<0x6xf32>, tensor<f32>) -> tensor<6xf32>
  %3 = stablehlo.slice %a [1:8, 0:6] : (tensor<8x6xf32>) -> tensor<7x6xf32>
  %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<0x6xf32>, tensor<7x6xf32>) -> tensor<7x6xf32>
  %5 = stablehlo.complex %a, %a : tensor<8x6xcomplex<f32>>
  %6 = stablehlo.multiply %c, %5 : tensor<8x6xcomplex<f32>>
  return %1, %2, %4, %6 : tensor<0x6xf32>, tensor<6xf32>, tensor<7x6xf32>, tensor<8x6xcomplex<f32>>
}
