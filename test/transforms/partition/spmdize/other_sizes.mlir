// RUN: shard-opt %s --spmdize=verify-repetition=true | FileCheck %s
// RUN: shard-opt %s --spmdize=collectives=stablehlo | FileCheck %s

// Ops that differ in sizes are planned once if all shards are even. Others have plans of their own.

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<4x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %c: tensor<6x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %d: tensor<1x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %e: tensor<2x20xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<24x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<10x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<20x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  // CHECK: stablehlo.tanh %arg0 : tensor<4x4xf32>
  // CHECK-NEXT: stablehlo.tanh %arg1 : tensor<2x6xf32>
  // CHECK-NEXT: stablehlo.tanh %arg2 : tensor<3x3xf32>
  // CHECK-NEXT: stablehlo.tanh %arg3 : tensor<1x2xf32>
  // CHECK-NEXT: stablehlo.tanh %arg4 : tensor<2x5xf32>
  %0 = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x16xf32>
  %1 = stablehlo.tanh %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<4x24xf32>
  %2 = stablehlo.tanh %c {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<6x10xf32>
  %3 = stablehlo.tanh %d {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<1x8xf32>
  %4 = stablehlo.tanh %e {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<2x20xf32>
  // CHECK: stablehlo.transpose {{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: stablehlo.transpose {{.*}} : (tensor<2x6xf32>) -> tensor<6x2xf32>
  // CHECK-NEXT: stablehlo.transpose {{.*}} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  // CHECK-NEXT: stablehlo.transpose {{.*}} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  // CHECK-NEXT: stablehlo.transpose {{.*}} : (tensor<2x5xf32>) -> tensor<5x2xf32>
  %5 = stablehlo.transpose %0, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %6 = stablehlo.transpose %1, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<4x24xf32>) -> tensor<24x4xf32>
  %7 = stablehlo.transpose %2, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<6x10xf32>) -> tensor<10x6xf32>
  %8 = stablehlo.transpose %3, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<1x8xf32>) -> tensor<8x1xf32>
  %9 = stablehlo.transpose %4, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : (tensor<2x20xf32>) -> tensor<20x2xf32>
  return %5, %6, %7, %8, %9 : tensor<16x8xf32>, tensor<24x4xf32>, tensor<10x6xf32>, tensor<8x1xf32>, tensor<20x2xf32>
}
