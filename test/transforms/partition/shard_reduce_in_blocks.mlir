// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(shard-reduce-in-blocks))' | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func @product
func.func @product(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8xf32> {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  // CHECK-NOT: sdy.reshard
  %0 = sdy.reshard %a <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  // CHECK: linalg.reduce {{.*}} ins(%arg0 :
  %1 = linalg.reduce {arith.mulf} ins(%0 : tensor<8x16xf32>) outs(%one : tensor<8xf32>) dimensions = [1]
  return %1 : tensor<8xf32>
}

// Another user keeps the gathered tensor.
// CHECK-LABEL: func @another_user
func.func @another_user(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x1xf32>, tensor<8x16xf32>) {
  // CHECK: %[[WHOLE:.*]] = sdy.reshard
  %0 = sdy.reshard %a <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  // CHECK: tosa.reduce_product %arg0
  %1 = tosa.reduce_product %0 {axis = 1 : i32} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  // CHECK: return %{{.*}}, %[[WHOLE]]
  return %1, %0 : tensor<8x1xf32>, tensor<8x16xf32>
}

// A sum can be a partial value of sdy, so a reshard before it is intentional.
// CHECK-LABEL: func @sum
func.func @sum(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x1xf32> {
  // CHECK: %[[WHOLE:.*]] = sdy.reshard
  // CHECK: tosa.reduce_sum %[[WHOLE]]
  %0 = sdy.reshard %a <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  %1 = tosa.reduce_sum %0 {axis = 1 : i32} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  return %1 : tensor<8x1xf32>
}

// Unchanged: more than the reduced dimension is gathered, and a loop does not reduce its output.
// CHECK-LABEL: func @others
func.func @others(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x1xf32>, tensor<8xf32>) {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  // CHECK: %[[ALL:.*]] = sdy.reshard
  // CHECK: tosa.reduce_product %[[ALL]]
  %0 = sdy.reshard %a <@mesh, [{}, {}]> : tensor<8x16xf32>
  %1 = tosa.reduce_product %0 {axis = 1 : i32} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  // CHECK: %[[ROWS:.*]] = sdy.reshard
  // CHECK: linalg.reduce ins(%[[ROWS]] :
  %2 = sdy.reshard %a <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  %3 = linalg.reduce ins(%2 : tensor<8x16xf32>) outs(%one : tensor<8xf32>) dimensions = [1] (%x: f32, %done: f32) {
    %4 = arith.addf %x, %done : f32
    %5 = arith.mulf %4, %4 : f32
    linalg.yield %5 : f32
  }
  return %1, %3 : tensor<8x1xf32>, tensor<8xf32>
}

// The axis moves to another dimension, although 4 elements of each shard are reduced to one. Of two rows, or where the
// reshard moves another axis too, it stays.
// CHECK-LABEL: func @moved
func.func @moved(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  // CHECK-NOT: sdy.reshard %arg0
  // CHECK: linalg.reduce {{.*}} ins(%arg0 :
  %0 = sdy.reshard %a <@mesh, [{}, {"x"}]> : tensor<16x8xf32>
  %1 = linalg.reduce {arith.mulf} ins(%0 : tensor<16x8xf32>) outs(%one : tensor<8xf32>) dimensions = [0]
  // CHECK: %[[FEW:.*]] = sdy.reshard %arg1
  // CHECK: linalg.reduce {{.*}} ins(%[[FEW]] :
  %2 = sdy.reshard %b <@mesh, [{}, {"x"}]> : tensor<4x8xf32>
  %3 = linalg.reduce {arith.mulf} ins(%2 : tensor<4x8xf32>) outs(%one : tensor<8xf32>) dimensions = [0]
  // CHECK: %[[OTHER:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"y"}]>
  // CHECK: linalg.reduce {{.*}} ins(%[[OTHER]] :
  %4 = sdy.reshard %a <@mesh, [{}, {"y"}]> : tensor<16x8xf32>
  %5 = linalg.reduce {arith.mulf} ins(%4 : tensor<16x8xf32>) outs(%one : tensor<8xf32>) dimensions = [0]
  return %1, %3, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
