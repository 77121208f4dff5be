// RUN: shard-opt %s --shard-reshape-parts | FileCheck %s
// RUN: shard-opt %s --shard-spmdize --shard-communication-report -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

sdy.mesh @mesh = <["x"=4, "y"=3]>

// The reshaped tensor has all parts on all devices, so that the slices are local.
// CHECK-LABEL: func.func @split
// CHECK-NEXT: %[[PARTS:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {"x"}]>]>} : (tensor<3x16xf32>) -> tensor<3x2x8xf32>
// CHECK-NEXT: %[[FIRST:.*]] = stablehlo.slice %[[PARTS]] [0:3, 0:1, 0:8]
// CHECK-NEXT: %[[LEFT:.*]] = stablehlo.reshape %[[FIRST]] {{.*}}<@mesh, [{}, {"x"}]>{{.*}} -> tensor<3x8xf32>
// CHECK-NEXT: %[[SECOND:.*]] = stablehlo.slice %[[PARTS]] [0:3, 1:2, 0:8]
// CHECK-NEXT: %[[RIGHT:.*]] = stablehlo.reshape %[[SECOND]]
// CHECK-NEXT: return %[[LEFT]], %[[RIGHT]]
// A device has 48 bytes of each half, of which it receives 24 bytes or less in each of two rounds.
// REPORT-NOT: all_gather
// REPORT: recv {{.*}} 24 B
// REPORT-NEXT: recv {{.*}} 24 B
func.func @split(%a: tensor<3x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<3x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, tensor<3x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = stablehlo.slice %a [0:3, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
  %1 = stablehlo.slice %a [0:3, 8:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}

// One half is enough, and the parts may outnumber the shards.
// CHECK-LABEL: func.func @half
// CHECK: stablehlo.reshape %arg1 {{.*}} -> tensor<8x8xf32>
// CHECK: stablehlo.reshape %arg0 {{.*}} -> tensor<2x8xf32>
// CHECK-COUNT-4: stablehlo.slice %{{.*}} : (tensor<8x8xf32>) -> tensor<1x8xf32>
func.func @half(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.slice %a [8:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %b [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<64xf32>) -> tensor<8xf32>
  %2 = stablehlo.slice %b [8:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<64xf32>) -> tensor<8xf32>
  %3 = stablehlo.slice %b [24:32] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<64xf32>) -> tensor<8xf32>
  %4 = stablehlo.slice %b [56:64] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<64xf32>) -> tensor<8xf32>
  %5 = stablehlo.add %1, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %6 = stablehlo.add %3, %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %7 = stablehlo.add %5, %6 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0, %7 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @join
// CHECK-NEXT: %[[LEFT:.*]] = stablehlo.reshape %arg0 {{.*}}<@mesh, [{}, {"x"}, {}]>{{.*}} -> tensor<1x8x3xf32>
// CHECK-NEXT: %[[RIGHT:.*]] = stablehlo.reshape %arg1 {{.*}}<@mesh, [{}, {"x"}, {}]>{{.*}} -> tensor<1x8x3xf32>
// CHECK-NEXT: %[[PARTS:.*]] = stablehlo.concatenate %[[LEFT]], %[[RIGHT]], dim = 0 {{.*}}<@mesh, [{}, {"x"}, {}]>
// CHECK-NEXT: stablehlo.reshape %[[PARTS]] {{.*}}<@mesh, [{"x"}, {}]>{{.*}} -> tensor<16x3xf32>
func.func @join(%a: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x3xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  return %0 : tensor<16x3xf32>
}

// Unchanged: less than half of a tensor, uneven shards, shards that end inside of parts, dimensions that are not
// sharded, and parts of different sizes.
// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: stablehlo.reshape
// CHECK: return
func.func @unchanged(
    %a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
    %b: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
    %c: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>},
    %d: tensor<16xf32>,
    %e: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32>, tensor<6xf32>, tensor<12xf32>, tensor<8xf32>, tensor<16xf32>) {
  %0 = stablehlo.slice %a [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<64xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %b [0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<12xf32>) -> tensor<6xf32>
  %2 = stablehlo.slice %c [0:12] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<24xf32>) -> tensor<12xf32>
  %3 = stablehlo.slice %d [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<8xf32>
  %4 = stablehlo.concatenate %e, %b, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>, tensor<12xf32>) -> tensor<16xf32>
  return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<6xf32>, tensor<12xf32>, tensor<8xf32>, tensor<16xf32>
}
