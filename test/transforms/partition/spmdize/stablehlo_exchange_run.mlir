// RUN: shard-run %s --collectives=stablehlo --communication-report=- | FileCheck %s
// RUN: shard-run %s --collectives=stablehlo --engine=pjrt | FileCheck %s --check-prefix=VALUES
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo | FileCheck %s --check-prefix=LOCAL

// Shards of 600x600 and of 400x900 do not nest: each round of tiles is a collective permute, and no device receives
// more than it lacks. Shards of 7x4 and 5x6 do not nest either; the local program pads them with zeros to even shards.
// CHECK: tensor<1200x1800xf32> {{.*}} 0.00e+00 {{.*}} OK
// CHECK: tensor<13x11xf32> {{.*}} 0.00e+00 {{.*}} OK
// CHECK: collective_permute
// CHECK: collectives {{.*}} 1,440,{{[0-9]+}} B
// VALUES: tensor<1200x1800xf32> {{.*}} 0.00e+00 {{.*}} OK
// VALUES: tensor<13x11xf32> {{.*}} 0.00e+00 {{.*}} OK

// LOCAL: @main(%{{.*}}: tensor<600x600xf32>, %{{.*}}: tensor<13x11xf32>) -> (tensor<400x900xf32>, tensor<13x11xf32>)
// LOCAL: stablehlo.negate {{.*}} tensor<7x4xf32>
// LOCAL: stablehlo.collective_permute
// LOCAL: dynamic_update_slice
// LOCAL: stablehlo.negate {{.*}} tensor<5x6xf32>
sdy.mesh @mesh = <["x"=2, "y"=3]>
func.func @main(
    %a: tensor<1200x1800xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<13x11xf32>)
    -> (tensor<1200x1800xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, tensor<13x11xf32>) {
  %0 = sdy.reshard %a <@mesh, [{"y"}, {"x"}]> : tensor<1200x1800xf32>
  %1 = sdy.sharding_constraint %b <@mesh, [{"x"}, {"y"}]> : tensor<13x11xf32>
  %2 = stablehlo.negate %1 : tensor<13x11xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"x"}, {"y"}]> : tensor<13x11xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{"y"}, {"x"}]> : tensor<13x11xf32>
  %5 = stablehlo.negate %4 : tensor<13x11xf32>
  %6 = sdy.sharding_constraint %5 <@mesh, [{"y"}, {"x"}]> : tensor<13x11xf32>
  return %0, %6 : tensor<1200x1800xf32>, tensor<13x11xf32>
}
