// RUN: shard-opt %s --shard-sink-reductions | FileCheck %s

// CHECK-LABEL: func.func @sums
// CHECK-NOT: all_reduce
// CHECK: %[[FIRST:.*]] = stablehlo.add %arg0, %arg1
// CHECK-NEXT: %[[SECOND:.*]] = stablehlo.add %[[FIRST]], %arg2
// CHECK-NEXT: %[[SUM:.*]] = "stablehlo.all_reduce"(%[[SECOND]]) <{channel_handle = {{.*}}handle = 5{{.*}}, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK-NOT: all_reduce
// CHECK: return %[[SUM]]
func.func @sums(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = stablehlo.add %0, %1 : tensor<8xf32>
  %4 = stablehlo.add %3, %2 : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// Unchanged: different groups, a sum of maxima, and an addend with another use.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: all_reduce
// CHECK-NOT: all_reduce
func.func @others(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  %3 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.maximum %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %sum = stablehlo.add %left, %right : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = stablehlo.add %3, %4 : tensor<8xf32>
  return %2, %5, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Each device contracts its own shards, and one all-reduce of 2x2 elements replaces four gathers.
// CHECK-LABEL: func.func @contractions
// CHECK-NEXT: %[[LEFT:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
// CHECK-NEXT: %[[RIGHT:.*]] = stablehlo.dot_general %arg1, %arg0, contracting_dims = [0] x [1]
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[LEFT]], %[[RIGHT]]
// CHECK-NEXT: "stablehlo.all_reduce"(%[[SUM]])
// CHECK-NOT: all_gather
func.func @contractions(%a: tensor<2x4xf32>, %b: tensor<4x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %1 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<4x2xf32>) -> tensor<8x2xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8x2xf32>) -> tensor<2x2xf32>
  %3 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<4x2xf32>) -> tensor<8x2xf32>
  %4 = "stablehlo.all_gather"(%a) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %5 = stablehlo.dot_general %3, %4, contracting_dims = [0] x [1] : (tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<2x2xf32>
  %6 = stablehlo.add %2, %5 : tensor<2x2xf32>
  return %6 : tensor<2x2xf32>
}

// The all-reduce would have 64 elements, and the gathers receive 8.
// CHECK-LABEL: func.func @large_result
// CHECK-COUNT-4: all_gather
// CHECK-NOT: all_reduce
func.func @large_result(%a: tensor<8x1xf32>, %b: tensor<1x8xf32>, %c: tensor<8x1xf32>, %d: tensor<1x8xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<8x1xf32>) -> tensor<8x2xf32>
  %1 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<1x8xf32>) -> tensor<2x8xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %3 = "stablehlo.all_gather"(%c) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<8x1xf32>) -> tensor<8x2xf32>
  %4 = "stablehlo.all_gather"(%d) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<1x8xf32>) -> tensor<2x8xf32>
  %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %6 = stablehlo.add %2, %5 : tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}

shard.grid @grid(shape = 2x2)

// Additions of any dialect move before an all-reduce of `shard`; a maximum is not a sum.
// CHECK-LABEL: func.func @shard
// CHECK-NEXT: %[[PARTIAL:.*]] = stablehlo.add %arg0, %arg1
// CHECK-NEXT: %[[SUM:.*]] = shard.all_reduce %[[PARTIAL]] on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: shard.all_reduce %arg0 on @grid grid_axes = [1] reduction = max
// CHECK-NEXT: shard.all_reduce %arg1 on @grid grid_axes = [1] reduction = max
// CHECK-NEXT: %[[MAXIMA:.*]] = stablehlo.add
// CHECK-NEXT: return %[[SUM]], %[[MAXIMA]]
func.func @shard(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
  %1 = shard.all_reduce %b on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  %3 = shard.all_reduce %a on @grid grid_axes = [1] reduction = max : tensor<8xf32> -> tensor<8xf32>
  %4 = shard.all_reduce %b on @grid grid_axes = [1] reduction = max : tensor<8xf32> -> tensor<8xf32>
  %5 = stablehlo.add %3, %4 : tensor<8xf32>
  return %2, %5 : tensor<8xf32>, tensor<8xf32>
}

// The all-reduce before the loop would run in each iteration.
// CHECK-LABEL: func.func @before_a_loop
// CHECK: shard.all_reduce %arg0
// CHECK-NEXT: scf.for
// CHECK-NEXT: shard.all_reduce
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.yield
func.func @before_a_loop(%a: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
  %1 = scf.for %i = %zero to %n step %one iter_args(%x = %a) -> tensor<8xf32> {
    %2 = shard.all_reduce %x on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
    %3 = arith.addf %0, %2 : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  }
  return %1 : tensor<8xf32>
}

// Sums over rows and then over columns: the devices combine only the last sum.
// CHECK-LABEL: func.func @all_dimensions
// CHECK:      %[[ROWS:.*]] = tosa.reduce_sum %arg0 {axis = 0 : i32} : (tensor<4x6xf32>) -> tensor<1x6xf32>
// CHECK-NEXT: %[[ALL:.*]] = tosa.reduce_sum %[[ROWS]] {axis = 1 : i32} : (tensor<1x6xf32>) -> tensor<1x1xf32>
// CHECK-NEXT: %[[SUM:.*]] = shard.all_reduce %[[ALL]] on @grid grid_axes = [0] : tensor<1x1xf32> -> tensor<1x1xf32>
// CHECK-NEXT: return %[[SUM]]
func.func @all_dimensions(%a: tensor<4x6xf32>) -> tensor<1x1xf32> {
  %0 = tosa.reduce_sum %a {axis = 0 : i32} : (tensor<4x6xf32>) -> tensor<1x6xf32>
  %1 = shard.all_reduce %0 on @grid grid_axes = [0] : tensor<1x6xf32> -> tensor<1x6xf32>
  %2 = tosa.reduce_sum %1 {axis = 1 : i32} : (tensor<1x6xf32>) -> tensor<1x1xf32>
  return %2 : tensor<1x1xf32>
}

// CHECK-LABEL: func.func @maxima
// CHECK:      %[[MOST:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK-NEXT: %[[OF_ALL:.*]] = "stablehlo.all_reduce"(%[[MOST]])
// CHECK:      }) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[OF_ALL]]
func.func @maxima(%a: tensor<4x6xf32>) -> tensor<4xf32> {
  %least = stablehlo.constant dense<-1.0> : tensor<f32>
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%left: tensor<f32>, %right: tensor<f32>):
    %most = stablehlo.maximum %left, %right : tensor<f32>
    stablehlo.return %most : tensor<f32>
  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.reduce(%0 init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Unchanged: each device would add the initial value, and maxima of sums are not sums.
// CHECK-LABEL: func.func @not_below
// CHECK:      shard.all_reduce %arg0
// CHECK-NEXT: stablehlo.reduce
// CHECK:      shard.all_reduce %arg1
// CHECK-NEXT: tosa.reduce_max
func.func @not_below(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> (tensor<4xf32>, tensor<4x1xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4x6xf32> -> tensor<4x6xf32>
  %1 = stablehlo.reduce(%0 init: %one) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = shard.all_reduce %b on @grid grid_axes = [0] : tensor<4x6xf32> -> tensor<4x6xf32>
  %3 = tosa.reduce_max %2 {axis = 1 : i32} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  return %1, %3 : tensor<4xf32>, tensor<4x1xf32>
}

// The gradients of two microbatches, added to zero as by `sum`: the transposes and the addition of zero are linear.
// CHECK-LABEL: func.func @from_zero
// CHECK-NOT: shard.all_reduce
// CHECK: %[[FIRST:.*]] = stablehlo.transpose %arg0
// CHECK: %[[ONE:.*]] = stablehlo.add %{{.*}}, %[[FIRST]]
// CHECK: %[[SECOND:.*]] = stablehlo.transpose %arg1
// CHECK: %[[BOTH:.*]] = stablehlo.add %[[ONE]], %[[SECOND]]
// CHECK: %[[SUM:.*]] = shard.all_reduce %[[BOTH]] on @grid grid_axes = [0] : tensor<6x4xf32> -> tensor<6x4xf32>
// CHECK-NOT: shard.all_reduce
// CHECK: return %[[SUM]]
func.func @from_zero(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4x6xf32> -> tensor<4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = stablehlo.add %zeros, %1 : tensor<6x4xf32>
  %3 = shard.all_reduce %b on @grid grid_axes = [0] : tensor<4x6xf32> -> tensor<4x6xf32>
  %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %5 = stablehlo.add %2, %4 : tensor<6x4xf32>
  return %5 : tensor<6x4xf32>
}

// Unchanged: a conversion to a wider type, whose all-reduce would receive more, and an addition of one.
// CHECK-LABEL: func.func @not_less
// CHECK-COUNT-3: shard.all_reduce %arg
// CHECK-NOT: shard.all_reduce
func.func @not_less(%a: tensor<8xbf16>, %b: tensor<8xbf16>, %c: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %ones = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<8xbf16> -> tensor<8xbf16>
  %1 = stablehlo.convert %0 : (tensor<8xbf16>) -> tensor<8xf32>
  %2 = shard.all_reduce %b on @grid grid_axes = [0] : tensor<8xbf16> -> tensor<8xbf16>
  %3 = stablehlo.convert %2 : (tensor<8xbf16>) -> tensor<8xf32>
  %4 = stablehlo.add %1, %3 : tensor<8xf32>
  %5 = shard.all_reduce %c on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %6 = stablehlo.add %5, %ones : tensor<8xf32>
  return %4, %6 : tensor<8xf32>, tensor<8xf32>
}
