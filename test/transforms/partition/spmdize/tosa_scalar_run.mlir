// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --collectives=stablehlo %s | FileCheck %s

// A sum of all elements is reshaped to a scalar, as in a loss from PyTorch.
// CHECK: tensor<f32> {{.*}} OK
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<f32> {
  %r = tosa.reduce_sum %x {axis = 0 : i32} : (tensor<8xf32>) -> tensor<1xf32>
  %s = tosa.const_shape {values = dense<> : tensor<0xindex>} : () -> !tosa.shape<0>
  %y = tosa.reshape %r, %s : (tensor<1xf32>, !tosa.shape<0>) -> tensor<f32>
  return %y : tensor<f32>
}
