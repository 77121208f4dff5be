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

// The weight has fewer bytes than the product: it is reshaped, also for three parts on four shards. The sum with a bias
// and the product are computed on parts.
// CHECK-LABEL: func.func @product
// CHECK-DAG: %[[W:.*]] = stablehlo.reshape %arg1 {{.*}}<@mesh, [{}, {}, {"x"}]>{{.*}} -> tensor<8x3x8xf32>
// CHECK-DAG: %[[B:.*]] = stablehlo.reshape %arg2 {{.*}}<@mesh, [{}, {"x"}]>{{.*}} -> tensor<3x8xf32>
// CHECK: %[[Y:.*]] = stablehlo.dot_general %arg0, %[[W]], contracting_dims = [1] x [0] {{.*}}<@mesh, [{"y"}, {}, {"x"}]>{{.*}} -> tensor<48x3x8xf32>
// CHECK: %[[BIAS:.*]] = stablehlo.broadcast_in_dim %[[B]], dims = [1, 2]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[Y]], %[[BIAS]] {{.*}}<@mesh, [{"y"}, {}, {"x"}]>
// CHECK-COUNT-3: stablehlo.slice %[[SUM]] {{.*}} -> tensor<48x1x8xf32>
// CHECK-NOT: stablehlo.dot_general
func.func @product(
    %x: tensor<48x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %w: tensor<8x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<48x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x8xf32>, tensor<8x24xf32>) -> tensor<48x24xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<24xf32>) -> tensor<48x24xf32>
  %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : tensor<48x24xf32>
  %3 = stablehlo.slice %2 [0:48, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x24xf32>) -> tensor<48x8xf32>
  %4 = stablehlo.slice %2 [0:48, 8:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x24xf32>) -> tensor<48x8xf32>
  %5 = stablehlo.slice %2 [0:48, 16:24] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x24xf32>) -> tensor<48x8xf32>
  %6 = stablehlo.add %3, %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : tensor<48x8xf32>
  %7 = stablehlo.add %6, %5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : tensor<48x8xf32>
  return %7 : tensor<48x8xf32>
}

// The gradient: the concatenation is contracted with the weight, and with activations for the gradient of the weight. It
// is also summed for that of the bias.
// CHECK-LABEL: func.func @gradient
// CHECK: %[[W:.*]] = stablehlo.reshape %arg3 {{.*}}<@mesh, [{}, {}, {"x"}]>{{.*}} -> tensor<8x2x8xf32>
// CHECK: %[[G:.*]] = stablehlo.concatenate {{.*}} -> tensor<96x2x8xf32>
// CHECK-DAG: stablehlo.dot_general %[[G]], %[[W]], contracting_dims = [1, 2] x [1, 2] {{.*}}<@mesh, [{"y"}, {}]>{{.*}} -> tensor<96x8xf32>
// CHECK-DAG: %[[DW:.*]] = stablehlo.dot_general %arg2, %[[G]], contracting_dims = [0] x [0] {{.*}}<@mesh, [{}, {}, {"x"}]>{{.*}} -> tensor<8x2x8xf32>
// CHECK-DAG: stablehlo.reshape %[[DW]] {{.*}}<@mesh, [{}, {"x"}]>{{.*}} -> tensor<8x16xf32>
// CHECK-DAG: %[[DB:.*]] = stablehlo.reduce(%[[G]] {{.*}} across dimensions = [0] {{.*}} -> tensor<2x8xf32>
// CHECK-DAG: stablehlo.reshape %[[DB]] {{.*}} -> tensor<16xf32>
func.func @gradient(
    %u: tensor<96x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
    %v: tensor<96x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
    %x: tensor<96x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %w: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<96x8xf32>, tensor<8x16xf32>, tensor<16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.concatenate %u, %v, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<96x8xf32>, tensor<96x8xf32>) -> tensor<96x16xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : (tensor<96x16xf32>, tensor<8x16xf32>) -> tensor<96x8xf32>
  %2 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<96x8xf32>, tensor<96x16xf32>) -> tensor<8x16xf32>
  %3 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<96x16xf32>, tensor<f32>) -> tensor<16xf32>
  return %1, %2, %3 : tensor<96x8xf32>, tensor<8x16xf32>, tensor<16xf32>
}

// A reshape to parts, and one from parts.
// CHECK-LABEL: func.func @reshapes
// CHECK-COUNT-2: stablehlo.reshape %arg1 {{.*}} -> tensor<8x3x8xf32>
// CHECK: %[[Y:.*]] = stablehlo.dot_general %arg0, {{.*}} -> tensor<48x3x8xf32>
// CHECK: stablehlo.reshape %[[Y]] {{.*}} -> tensor<48x3x4x2xf32>
// CHECK: %[[Z:.*]] = stablehlo.reshape %{{.*}} {{.*}}<@mesh, [{"y"}, {}, {"x"}]>{{.*}} -> tensor<48x3x8xf32>
// CHECK: stablehlo.dot_general %[[Z]], {{.*}}, contracting_dims = [1, 2] x [1, 2]
func.func @reshapes(
    %x: tensor<48x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %w: tensor<8x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<48x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x8xf32>, tensor<8x24xf32>) -> tensor<48x24xf32>
  %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}, {"x"}, {}]>]>} : (tensor<48x24xf32>) -> tensor<48x3x4x2xf32>
  %2 = stablehlo.sine %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}, {"x"}, {}]>]>} : tensor<48x3x4x2xf32>
  %3 = stablehlo.reshape %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x3x4x2xf32>) -> tensor<48x24xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : (tensor<48x24xf32>, tensor<8x24xf32>) -> tensor<48x8xf32>
  return %4 : tensor<48x8xf32>
}

// The product has fewer bytes than the weight, or other users: its own parts are taken.
// CHECK-LABEL: func.func @few_rows
// CHECK: %[[Y:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK: stablehlo.reshape %[[Y]] {{.*}} -> tensor<3x2x8xf32>
// CHECK: %[[Z:.*]] = stablehlo.dot_general %arg2, %arg1
// CHECK: stablehlo.reshape %[[Z]] {{.*}} -> tensor<48x2x8xf32>
func.func @few_rows(
    %x: tensor<3x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %w: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %many: tensor<48x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<3x8xf32>, tensor<48x8xf32>, tensor<48x16xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<3x8xf32>, tensor<8x16xf32>) -> tensor<3x16xf32>
  %1 = stablehlo.slice %0 [0:3, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
  %2 = stablehlo.dot_general %many, %w, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x8xf32>, tensor<8x16xf32>) -> tensor<48x16xf32>
  %3 = stablehlo.slice %2 [0:48, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<48x16xf32>) -> tensor<48x8xf32>
  return %1, %3, %2 : tensor<3x8xf32>, tensor<48x8xf32>, tensor<48x16xf32>
}
