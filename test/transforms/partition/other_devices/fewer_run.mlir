// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// Weights go from eight devices to six, which are not a part of a grid of eight.
sdy.mesh @training = <["x"=4, "y"=2]>
sdy.mesh @serving = <["x"=2, "y"=3]>
// CHECK: @main on 8
// CHECK: <@serving, [{"y"}, {"x"}]> {{.*}} OK
// CHECK: <@serving, [{}, {"x", "y"}]> {{.*}} OK
// CHECK: <@serving, []> {{.*}} OK
func.func @main(%w: tensor<12x24xf32> {sdy.sharding = #sdy.sharding<@training, [{"x"}, {"y"}]>}, %v: tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@training, [{}, {"y", "x"}]>},
                %s: tensor<f32> {sdy.sharding = #sdy.sharding<@training, []>})
    -> (tensor<12x24xf16> {sdy.sharding = #sdy.sharding<@serving, [{"y"}, {"x"}]>}, tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@serving, [{}, {"x", "y"}]>},
        tensor<f32> {sdy.sharding = #sdy.sharding<@serving, []>}) {
  %0 = sdy.sharding_constraint %w <@serving, [{"y"}, {"x"}]> : tensor<12x24xf32>
  %1 = stablehlo.convert %0 : (tensor<12x24xf32>) -> tensor<12x24xf16>
  %2 = stablehlo.add %v, %v : tensor<24x12xf32>
  return %1, %2, %s : tensor<12x24xf16>, tensor<24x12xf32>, tensor<f32>
}
