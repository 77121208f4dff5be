// RUN: shard-opt %s --shard-sink-accumulations --split-input-file | FileCheck %s

shard.grid @grid(shape = 2x2)

// A product with a constant and a transpose are linear. The all-reduced value takes the place of the accumulated one.
// CHECK-LABEL: func.func @linear
// CHECK: %[[R:.*]]:2 = stablehlo.while(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %{{.*}}) : tensor<i32>, tensor<4x8xf32>
// CHECK-NOT: all_reduce
// CHECK: %[[NEW:.*]] = stablehlo.add %[[SUM]], %{{.*}} : tensor<4x8xf32>
// CHECK: stablehlo.return %{{.*}}, %[[NEW]]
// CHECK: %[[TOTAL:.*]] = shard.all_reduce %[[R]]#1 on @grid grid_axes = [0] : tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK: return %[[TOTAL]]
func.func @linear(%x: tensor<8x4xf32>, %n: tensor<i32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %start = stablehlo.broadcast_in_dim %none, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<4x8xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %y = stablehlo.sine %x : tensor<8x4xf32>
      %all = shard.all_reduce %y on @grid grid_axes = [0] : tensor<8x4xf32> -> tensor<8x4xf32>
      %halves = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
      %scaled = stablehlo.multiply %halves, %all : tensor<8x4xf32>
      %turned = stablehlo.transpose %scaled, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %more = stablehlo.add %sum, %turned : tensor<4x8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %more : tensor<i32>, tensor<4x8xf32>
    }
  return %r#1 : tensor<4x8xf32>
}

// -----

// A local summand stays in the accumulated value; sums of two collectives have values of their own. The element type is
// that of the sum.
// CHECK-LABEL: func.func @several
// CHECK: %[[R:.*]]:4 = stablehlo.while(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %arg3, %[[PARTIAL:.*]] = %{{.*}}, %[[SHARD:.*]] = %{{.*}}) : tensor<i32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
// CHECK-NOT: stablehlo.all_
// CHECK-DAG: stablehlo.add %[[SUM]], %arg2 : tensor<8xf32>
// CHECK-DAG: stablehlo.add %[[PARTIAL]], %{{.*}} : tensor<8xf32>
// CHECK-DAG: stablehlo.add %[[SHARD]], %arg1 : tensor<4xf32>
// CHECK: %[[REDUCED:.*]] = "stablehlo.all_reduce"(%[[R]]#2) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}>
// CHECK: stablehlo.add %{{.*}} : tensor<f32>
// CHECK: %[[GATHERED:.*]] = "stablehlo.all_gather"(%[[R]]#3)
// CHECK: %[[ONE:.*]] = stablehlo.add %[[R]]#1, %[[REDUCED]]
// CHECK: %[[TWO:.*]] = stablehlo.add %[[ONE]], %[[GATHERED]]
// CHECK: return %[[TWO]]
func.func @several(%x: tensor<8xbf16>, %y: tensor<4xf32>, %z: tensor<8xf32>, %start: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<8xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %all = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>}> ({
      ^bb0(%left: tensor<bf16>, %right: tensor<bf16>):
        %0 = stablehlo.add %left, %right : tensor<bf16>
        stablehlo.return %0 : tensor<bf16>
      }) : (tensor<8xbf16>) -> tensor<8xbf16>
      %wide = stablehlo.convert %all : (tensor<8xbf16>) -> tensor<8xf32>
      %gathered = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
      %1 = stablehlo.add %wide, %sum : tensor<8xf32>
      %2 = stablehlo.add %gathered, %z : tensor<8xf32>
      %3 = stablehlo.add %1, %2 : tensor<8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %3 : tensor<i32>, tensor<8xf32>
    }
  return %r#1 : tensor<8xf32>
}

// -----

shard.grid @grid(shape = 2x2)

// Both loops add to one value, which does not start at zero: it is added once, after the outer loop.
// CHECK-LABEL: func.func @nested
// CHECK: %[[R:.*]]:2 = stablehlo.while(
// CHECK: %[[INNER:.*]]:2 = stablehlo.while(
// CHECK-NOT: all_reduce
// CHECK: stablehlo.return %{{.*}} : tensor<i32>, tensor<8xf32>
// CHECK-NOT: all_reduce
// CHECK: stablehlo.return %{{.*}} : tensor<i32>, tensor<8xf32>
// CHECK: %[[TOTAL:.*]] = shard.all_reduce %[[R]]#1
// CHECK: %[[SUM:.*]] = stablehlo.add %arg1, %[[TOTAL]]
// CHECK: return %[[SUM]]
func.func @nested(%x: tensor<8xf32>, %start: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<8xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %q:2 = stablehlo.while(%j = %zero, %part = %sum) : tensor<i32>, tensor<8xf32>
        cond {
          %goes_on = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %goes_on : tensor<i1>
        } do {
          %all = shard.all_reduce %x on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
          %more = stablehlo.add %all, %part : tensor<8xf32>
          %next = stablehlo.add %j, %one : tensor<i32>
          stablehlo.return %next, %more : tensor<i32>, tensor<8xf32>
        }
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %q#1 : tensor<i32>, tensor<8xf32>
    }
  return %r#1 : tensor<8xf32>
}

// -----

shard.grid @grid(shape = 2x2)

// Unchanged: a sum that the loop reads, or that its condition reads; a maximum; a summand that is not linear in the
// the summand, and a sum of a value from outside; and a reduce-scatter.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-1: shard.all_reduce
// CHECK: stablehlo.while
// CHECK-COUNT-4: shard.all_reduce
// CHECK: shard.reduce_scatter
// CHECK-NOT: shard.all_reduce
func.func @others(%x: tensor<8xf32>, %s: tensor<f32>) -> (tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) {
  %start = stablehlo.constant dense<0.0> : tensor<8xf32>
  %start4 = stablehlo.constant dense<0.0> : tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %most = stablehlo.constant dense<9.0> : tensor<f32>
  %outside = shard.all_reduce %x on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %r:6 = stablehlo.while(%a = %start, %b = %zero, %c = %start, %d = %start, %e = %start, %f = %start4) : tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
    cond {
      %goes_on = stablehlo.compare LT, %b, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %y = stablehlo.sine %a : tensor<8xf32>
      %0 = shard.all_reduce %y on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
      %a1 = stablehlo.add %a, %0 : tensor<8xf32>
      %1 = shard.all_reduce %s on @grid grid_axes = [0] : tensor<f32> -> tensor<f32>
      %b1 = stablehlo.add %b, %1 : tensor<f32>
      %2 = shard.all_reduce %y on @grid grid_axes = [0] reduction = max : tensor<8xf32> -> tensor<8xf32>
      %c1 = stablehlo.add %c, %2 : tensor<8xf32>
      %3 = shard.all_reduce %y on @grid grid_axes = [1] : tensor<8xf32> -> tensor<8xf32>
      %4 = stablehlo.tanh %3 : tensor<8xf32>
      %d1 = stablehlo.add %d, %4 : tensor<8xf32>
      %e1 = stablehlo.add %e, %outside : tensor<8xf32>
      %6 = shard.reduce_scatter %x on @grid grid_axes = [0] scatter_dim = 0 : tensor<8xf32> -> tensor<4xf32>
      %f1 = stablehlo.add %f, %6 : tensor<4xf32>
      stablehlo.return %a1, %b1, %c1, %d1, %e1, %f1 : tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
    }
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
}
