// RUN: shard-opt %s --shard-slice-by-steps | FileCheck %s

// The start that JAX computes: it adds the size of the dimension to a negative one.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[BLOCKS:.*]] = stablehlo.reshape %arg0 : (tensor<3x32xf32>) -> tensor<3x4x8xf32>
// CHECK: stablehlo.while(%[[I:.*]] = %{{.*}}, %[[X:.*]] = %[[BLOCKS]], %{{.*}}) : tensor<i32>, tensor<3x4x8xf32>, tensor<3x8xf32>
// CHECK: %[[ONE:.*]] = stablehlo.dynamic_slice %[[X]], %{{.*}}, %[[I]], %{{.*}}, sizes = [3, 1, 8]
// CHECK: stablehlo.reshape %[[ONE]] : (tensor<3x1x8xf32>) -> tensor<3x8xf32>
func.func @blocks(%x: tensor<3x32xf32>) -> tensor<3x8xf32> {
  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<4> : tensor<i32>
  %size = stablehlo.constant dense<8> : tensor<i32>
  %all = stablehlo.constant dense<32> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<3x8xf32>
  %r:3 = stablehlo.while(%i = %first, %y = %x, %sum = %zeros) : tensor<i32>, tensor<3x32xf32>, tensor<3x8xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %at = stablehlo.multiply %i, %size : tensor<i32>
      %is_negative = stablehlo.compare LT, %at, %first : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %from_end = stablehlo.add %at, %all : tensor<i32>
      %start = stablehlo.select %is_negative, %from_end, %at : tensor<i1>, tensor<i32>
      %part = stablehlo.dynamic_slice %y, %first, %start, sizes = [3, 8] : (tensor<3x32xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
      %more = stablehlo.add %sum, %part : tensor<3x8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %y, %more : tensor<i32>, tensor<3x32xf32>, tensor<3x8xf32>
    }
  return %r#2 : tensor<3x8xf32>
}

// Unchanged: blocks that overlap, that do not divide the dimension, from a counter that begins below zero, whose start
// overflows its type, and of a tensor that the loop changes.
// CHECK-LABEL: func.func @others
// CHECK-NOT: stablehlo.reshape
// CHECK: return
func.func @others(%x: tensor<32xf32>, %y: tensor<1024xf32>) -> (tensor<8xf32>, tensor<32xf32>, tensor<64xf32>) {
  %first = stablehlo.constant dense<0> : tensor<i32>
  %below = stablehlo.constant dense<-1> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<4> : tensor<i32>
  %size = stablehlo.constant dense<8> : tensor<i32>
  %half = stablehlo.constant dense<4> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %narrow = stablehlo.constant dense<64> : tensor<i8>
  %narrow_one = stablehlo.constant dense<1> : tensor<i8>
  %narrow_first = stablehlo.constant dense<0> : tensor<i8>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %zeros5 = stablehlo.constant dense<0.0> : tensor<5xf32>
  %zeros64 = stablehlo.constant dense<0.0> : tensor<64xf32>
  %r:11 = stablehlo.while(%i = %first, %j = %below, %k = %narrow_first, %a = %x, %b = %x, %c = %x, %d = %y, %e = %x, %s = %zeros, %s5 = %zeros5, %s64 = %zeros64) : tensor<i32>, tensor<i32>, tensor<i8>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<1024xf32>, tensor<32xf32>, tensor<8xf32>, tensor<5xf32>, tensor<64xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %0 = stablehlo.multiply %i, %half : tensor<i32>
      %of_a = stablehlo.dynamic_slice %a, %0, sizes = [8] : (tensor<32xf32>, tensor<i32>) -> tensor<8xf32>
      %1 = stablehlo.multiply %i, %five : tensor<i32>
      %of_b = stablehlo.dynamic_slice %b, %1, sizes = [5] : (tensor<32xf32>, tensor<i32>) -> tensor<5xf32>
      %2 = stablehlo.multiply %j, %size : tensor<i32>
      %of_c = stablehlo.dynamic_slice %c, %2, sizes = [8] : (tensor<32xf32>, tensor<i32>) -> tensor<8xf32>
      %3 = stablehlo.multiply %k, %narrow : tensor<i8>
      %of_d = stablehlo.dynamic_slice %d, %3, sizes = [64] : (tensor<1024xf32>, tensor<i8>) -> tensor<64xf32>
      %4 = stablehlo.multiply %i, %size : tensor<i32>
      %of_e = stablehlo.dynamic_slice %e, %4, sizes = [8] : (tensor<32xf32>, tensor<i32>) -> tensor<8xf32>
      %new_e = stablehlo.negate %e : tensor<32xf32>
      %5 = stablehlo.add %of_a, %of_c : tensor<8xf32>
      %6 = stablehlo.add %5, %of_e : tensor<8xf32>
      %next_i = stablehlo.add %i, %one : tensor<i32>
      %next_j = stablehlo.add %j, %one : tensor<i32>
      %next_k = stablehlo.add %k, %narrow_one : tensor<i8>
      stablehlo.return %next_i, %next_j, %next_k, %a, %b, %c, %d, %new_e, %6, %of_b, %of_d : tensor<i32>, tensor<i32>, tensor<i8>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<1024xf32>, tensor<32xf32>, tensor<8xf32>, tensor<5xf32>, tensor<64xf32>
    }
  return %r#8, %r#7, %r#10 : tensor<8xf32>, tensor<32xf32>, tensor<64xf32>
}
