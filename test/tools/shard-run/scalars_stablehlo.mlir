// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// CHECK: 0 index {{.*}} OK
// CHECK-NEXT: 1 tensor<4xf32> {{.*}} OK
// CHECK-NEXT: 2 complex<f32> {{.*}} OK
sdy.mesh @m = <["a"=2]>
func.func @main(%n: index, %x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}, %f: f32, %c: complex<f32>) -> (index, tensor<4xf32>, complex<f32>) {
  %0 = tensor.from_elements %f : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.add %x, %1 : tensor<4xf32>
  return %n, %2, %c : index, tensor<4xf32>, complex<f32>
}
