// RUN: shard-run %s | FileCheck %s
// RUN: not shard-run %s --rtol=1e-4 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: shard-run %s --rtol=1e-4 --atol=1e-3 | FileCheck %s --check-prefix=ATOL

// The sum of differences from the mean is zero in theory: the result of each program is a rounding error.

// CHECK: @main on 4 ranks, compared with it on one, without sharding:
// CHECK: 0 result['bias'] {{ *}}tensor<16xf32> {{.*}} OK, rounding
// CHECK: 1 result['mean'] {{ *}}tensor<16xf32> {{.*}} OK{{$}}
// STRICT: 0 result['bias'] {{.*}} MISMATCH
// STRICT: shard-run: error: result 0 result['bias'] is {{.*}} in place of {{.*}} at [{{[0-9]+}}], and {{[0-9]+}} of 16 elements differ
// ATOL: 0 result['bias'] {{.*}} OK{{$}}

sdy.mesh @mesh = <["x"=4]>

func.func @main(%x: tensor<4096x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<16xf32> {jax.result_info = "result['bias']"}, tensor<16xf32> {jax.result_info = "result['mean']"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<4096.0> : tensor<16xf32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4096x16xf32>, tensor<f32>) -> tensor<16xf32>
  %mean = stablehlo.divide %sum, %count : tensor<16xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [1] : (tensor<16xf32>) -> tensor<4096x16xf32>
  %differences = stablehlo.subtract %x, %means : tensor<4096x16xf32>
  %bias = stablehlo.reduce(%differences init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4096x16xf32>, tensor<f32>) -> tensor<16xf32>
  return %bias, %mean : tensor<16xf32>, tensor<16xf32>
}
