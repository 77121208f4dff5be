// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// A loop on one mesh, whose result is needed on another.
sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=2], device_ids=[2, 3]>
// CHECK: @main on 4
// CHECK: <@b, [{"x"}, {}]> {{.*}} OK
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}, {}]>}) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %o = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %z, %v = %arg0) : tensor<i32>, tensor<8x8xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %t = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %u = stablehlo.tanh %t : tensor<8x8xf32>
      %j = stablehlo.add %i, %o : tensor<i32>
      stablehlo.return %j, %u : tensor<i32>, tensor<8x8xf32>
    }
  return %r#1 : tensor<8x8xf32>
}
