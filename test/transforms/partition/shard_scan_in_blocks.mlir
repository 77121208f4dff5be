// RUN: shard-opt %s --shard-scan-in-blocks --verify-each | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Each block is scanned separately, then the totals: only those of the three blocks before the last are needed.
// CHECK-LABEL: func @sum
// CHECK-SAME:   (%[[A:.*]]: tensor<16x6xf32>
// CHECK:      %[[ZERO:.*]] = stablehlo.constant
// CHECK-NEXT: %[[BLOCKS:.*]] = stablehlo.reshape %[[A]] {{.*}}<@mesh, [{"x", "y"}, {}, {}]>{{.*}} -> tensor<4x4x6xf32>
// CHECK-NEXT: %[[SUMS:.*]] = "stablehlo.reduce_window"(%[[BLOCKS]], %[[ZERO]])
// CHECK-SAME{LITERAL}: padding = dense<[[0, 0], [3, 0], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 4, 1>
// CHECK:      %[[LAST:.*]] = stablehlo.slice %[[SUMS]] [0:4, 3:4, 0:6]
// CHECK-NEXT: %[[TOTALS:.*]] = stablehlo.reshape %[[LAST]] {{.*}}<@mesh, [{"x", "y"}, {}]>{{.*}} -> tensor<4x6xf32>
// CHECK-NEXT: %[[ALL:.*]] = sdy.reshard %[[TOTALS]] <@mesh, [{}, {}]>
// CHECK-NEXT: %[[BUT_LAST:.*]] = stablehlo.slice %[[ALL]] [0:3, 0:6]
// CHECK-NEXT: %[[BEFORE:.*]] = "stablehlo.reduce_window"(%[[BUT_LAST]], %[[ZERO]])
// CHECK-SAME{LITERAL}: padding = dense<[[3, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 1>
// CHECK:      %[[OWN:.*]] = sdy.reshard %[[BEFORE]] <@mesh, [{"x", "y"}, {}]>
// CHECK-NEXT: %[[ALL_OVER:.*]] = stablehlo.broadcast_in_dim %[[OWN]], dims = [0, 2]
// CHECK-NEXT: %[[RESULT:.*]] = stablehlo.add %[[ALL_OVER]], %[[SUMS]]
// CHECK-NEXT: stablehlo.reshape %[[RESULT]] {{.*}}<@mesh, [{"x", "y"}, {}]>{{.*}} -> tensor<16x6xf32>
func.func @sum(%a: tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<16x6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 16, 1>, padding = dense<[[15, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %1 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>} : (tensor<16x6xf32>, tensor<f32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}

// A scan from the end, whose last block is not full. The sharding of another dimension stays.
// CHECK-LABEL: func @reverse_maximum
// CHECK:      stablehlo.pad %{{.*}}, low = [0, 0], high = [0, 1], {{.*}} -> tensor<4x14xi32>
// CHECK:      tensor<4x14xi32>) -> tensor<4x2x7xi32>
// CHECK:      padding = dense<{{\[\[}}0, 0], [0, 0], [0, 6]]>
// CHECK:      stablehlo.slice %{{.*}} [0:4, 0:2, 0:1]
// CHECK:      sdy.reshard %{{.*}} <@mesh, [{"x"}, {}]>
// CHECK-NEXT: stablehlo.slice %{{.*}} [0:4, 1:2]
// CHECK:      stablehlo.maximum %{{.*}}, %{{.*}} {{.*}}<@mesh, [{"x"}, {"y"}, {}]>
// CHECK:      stablehlo.slice %{{.*}} [0:4, 0:13]
func.func @reverse_maximum(%a: tensor<4x13xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x13xi32> {
  %least = stablehlo.constant dense<-5> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%a, %least) <{window_dimensions = array<i64: 1, 13>, padding = dense<[[0, 0], [0, 12]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<i32>, %right: tensor<i32>):
    %1 = stablehlo.maximum %left, %right : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<4x13xi32>, tensor<i32>) -> tensor<4x13xi32>
  return %0 : tensor<4x13xi32>
}

// Unchanged: an initial value that counts with every element of the result, a sum of values other than elements,
// windows that do not extend to the end, and a dimension that is not sharded.
// CHECK-LABEL: func @others
// CHECK-COUNT-4: "stablehlo.reduce_window"(%arg0,
// CHECK-NOT: reduce_window
func.func @others(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %one) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %4 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %1 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %4 = stablehlo.multiply %right, %right : tensor<f32>
    %5 = stablehlo.add %left, %4 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %2 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 7, 1>, padding = dense<[[6, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %4 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %3 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 1, 8>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %4 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Scans that change their sharding, or that have one element per block, stay, but a scan after them is split.
// CHECK-LABEL: func @behind_others
// CHECK:         "stablehlo.reduce_window"(%arg0
// CHECK:         "stablehlo.reduce_window"(%arg1
// CHECK-NOT:     "stablehlo.reduce_window"(%arg0
// CHECK:         stablehlo.reshape %arg0 {{.*}} -> tensor<2x4x8xf32>
func.func @behind_others(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %b: tensor<2x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32>, tensor<2x8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %4 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %1 = "stablehlo.reduce_window"(%b, %zero) <{window_dimensions = array<i64: 2, 1>, padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %4 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %2 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %4 = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<2x8xf32>, tensor<8x8xf32>
}

// The log-sum-exp of JAX, which is found to be associative, with its identity.
// CHECK-LABEL: func @log_sum_exp
// CHECK:      %[[BLOCKS:.*]] = stablehlo.reshape %arg0 {{.*}} -> tensor<2x4x8xf32>
// CHECK:      %[[OWN:.*]] = "stablehlo.reduce_window"(%[[BLOCKS]]
// CHECK:      %[[BEFORE:.*]] = stablehlo.broadcast_in_dim {{.*}} -> tensor<2x4x8xf32>
// CHECK-NEXT: stablehlo.maximum %[[BEFORE]], %[[OWN]] {{.*}}<@mesh, [{"x"}, {}, {}]>{{.*}} : tensor<2x4x8xf32>
// CHECK:      stablehlo.compare {{.*}} -> tensor<2x4x8xi1>
// CHECK:      %[[RESULT:.*]] = stablehlo.select {{.*}} : tensor<2x4x8xi1>, tensor<2x4x8xf32>
// CHECK-NEXT: stablehlo.reshape %[[RESULT]] {{.*}} -> tensor<8x8xf32>
func.func @log_sum_exp(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %infinity = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %infinity) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %max = stablehlo.maximum %left, %right : tensor<f32>
    %difference = stablehlo.subtract %left, %right : tensor<f32>
    %is_nan = stablehlo.compare NE, %difference, %difference : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %sum = stablehlo.add %left, %right : tensor<f32>
    %distance = stablehlo.abs %difference : tensor<f32>
    %negative = stablehlo.negate %distance : tensor<f32>
    %exp = stablehlo.exponential %negative : tensor<f32>
    %log = stablehlo.log_plus_one %exp : tensor<f32>
    %more = stablehlo.add %max, %log : tensor<f32>
    %result = stablehlo.select %is_nan, %sum, %more : tensor<i1>, tensor<f32>
    stablehlo.return %result : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Unchanged: the initial value is not the identity, or the body is not associative.
// CHECK-LABEL: func @not_a_monoid
// CHECK:      "stablehlo.reduce_window"(%arg0
// CHECK:      "stablehlo.reduce_window"(%arg0
// CHECK-NOT:  stablehlo.reshape
func.func @not_a_monoid(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %max = stablehlo.maximum %left, %right : tensor<f32>
    %difference = stablehlo.subtract %left, %right : tensor<f32>
    %is_nan = stablehlo.compare NE, %difference, %difference : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %sum = stablehlo.add %left, %right : tensor<f32>
    %distance = stablehlo.abs %difference : tensor<f32>
    %negative = stablehlo.negate %distance : tensor<f32>
    %exp = stablehlo.exponential %negative : tensor<f32>
    %log = stablehlo.log_plus_one %exp : tensor<f32>
    %more = stablehlo.add %max, %log : tensor<f32>
    %result = stablehlo.select %is_nan, %sum, %more : tensor<i1>, tensor<f32>
    stablehlo.return %result : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %1 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %2 = stablehlo.add %left, %right : tensor<f32>
    %3 = stablehlo.multiply %2, %half : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
