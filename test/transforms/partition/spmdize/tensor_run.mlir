// RUN: shard-run %s | FileCheck %s

// Ops of tensor and TOSA on shards give the same results as without sharding.
// CHECK: result
// CHECK-COUNT-10: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(
    %a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<3x4x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {"y"}]>},
    %c: tensor<3x7x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {}]>}, %i: tensor<2xi32>)
    -> (tensor<48xf32>, tensor<2x4x6xf32>, tensor<8x2xf32>, tensor<8x6xf32>, tensor<10x6xf32>, tensor<16x6xf32>,
        tensor<3x4x5xf32>, tensor<3x4x1xf32>, tensor<7x3x4xf32>, tensor<8x6xf32>) {
  %0 = tensor.collapse_shape %a [[0, 1]] : tensor<8x6xf32> into tensor<48xf32>
  %1 = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 4, 6] : tensor<8x6xf32> into tensor<2x4x6xf32>
  %2 = tensor.extract_slice %a[0, 2] [8, 2] [1, 1] : tensor<8x6xf32> to tensor<8x2xf32>
  %3 = tensor.insert_slice %2 into %a[0, 3] [8, 2] [1, 1] : tensor<8x2xf32> into tensor<8x6xf32>
  %zero = arith.constant 0.0 : f32
  %4 = tensor.pad %a low[1, 0] high[1, 0] {
  ^bb0(%p: index, %q: index):
    tensor.yield %zero : f32
  } : tensor<8x6xf32> to tensor<10x6xf32>
  %5 = tensor.concat dim(0) %a, %a : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<16x6xf32>
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %6 = tosa.matmul %b, %c, %z, %z : (tensor<3x4x7xf32>, tensor<3x7x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3x4x5xf32>
  %7 = tosa.reduce_max %b {axis = 2 : i32} : (tensor<3x4x7xf32>) -> tensor<3x4x1xf32>
  %8 = tosa.transpose %b {perms = array<i32: 2, 0, 1>} : (tensor<3x4x7xf32>) -> tensor<7x3x4xf32>
  %9 = tosa.tanh %a : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<48xf32>, tensor<2x4x6xf32>, tensor<8x2xf32>, tensor<8x6xf32>,
      tensor<10x6xf32>, tensor<16x6xf32>, tensor<3x4x5xf32>, tensor<3x4x1xf32>, tensor<7x3x4xf32>, tensor<8x6xf32>
}
