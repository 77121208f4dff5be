// RUN: shard-run -n 4 %s | FileCheck %s
// CHECK: 0 {{ *}}tensor<8x8xf32> {{.*}} OK

// One tensor is sent twice. Its memory must not be reused in between, for example for the first product.

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.transpose %a, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %3 = sdy.reshard %1 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %4 = stablehlo.dot %1, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = sdy.reshard %4 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %7 = sdy.reshard %0 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %6 = stablehlo.dot %5, %7 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}
