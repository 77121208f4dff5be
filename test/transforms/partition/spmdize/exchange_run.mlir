// RUN: shard-run %s --communication-report=- | FileCheck %s

// Shards of 600x600 and of 400x900 do not nest: tiles that two shards have in common go directly from device to device,
// and no device receives more than it lacks.
// CHECK: tensor<1200x1800xf32> {{.*}} 0.00e+00 {{.*}} OK
// CHECK: tensor<7x10xf32> {{.*}} 0.00e+00 {{.*}} OK
// CHECK: recv {{ +}}x=2 y=3
// CHECK-NOT: all_gather
// CHECK: collectives {{.*}} 1,440,{{[0-9]+}} B
sdy.mesh @mesh = <["x"=2, "y"=3]>
func.func @main(
    %a: tensor<1200x1800xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<7x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<1200x1800xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<7x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  %0 = sdy.reshard %a <@mesh, [{"y"}, {"x"}]> : tensor<1200x1800xf32>
  %1 = sdy.reshard %b <@mesh, [{"y"}, {"x"}]> : tensor<7x10xf32>
  return %0, %1 : tensor<1200x1800xf32>, tensor<7x10xf32>
}
