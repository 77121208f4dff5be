// RUN: shard-opt %s --shard-iterate-unsharded | FileCheck %s
// RUN: shard-opt %s --shard-propagate | FileCheck %s --check-prefix=PROPAGATED

sdy.mesh @mesh = <["data"=8]>

// Microbatches: the axis shards the elements of a microbatch, and only what is left of it the microbatches.
// CHECK-LABEL: func.func @read
// CHECK: stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([j, i, k]) {i=16, j=4, k=3}>}
// PROPAGATED-LABEL: func.func @read
// PROPAGATED: stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"data"}, {}]>]>}
// PROPAGATED: stablehlo.dynamic_slice {{.*}}<@mesh, [{}, {"data"}, {}]>
func.func @read(%x: tensor<64x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<4> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<3xf32>
  %parts = stablehlo.reshape %x : (tensor<64x3xf32>) -> tensor<4x16x3xf32>
  %r:3 = stablehlo.while(%all = %parts, %i = %first, %sum = %start) : tensor<4x16x3xf32>, tensor<i32>, tensor<3xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %part = stablehlo.dynamic_slice %all, %i, %first, %first, sizes = [1, 16, 3] : (tensor<4x16x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x3xf32>
      %of_part = stablehlo.reduce(%part init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16x3xf32>, tensor<f32>) -> tensor<3xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %more = stablehlo.add %sum, %of_part : tensor<3xf32>
      stablehlo.return %all, %next, %more : tensor<4x16x3xf32>, tensor<i32>, tensor<3xf32>
    }
  return %r#2 : tensor<3xf32>
}

// The batch has two dimensions, and microbatches are converted. The results are merged in the opposite order.
// CHECK-LABEL: func.func @written
// CHECK: stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([k, ij]) {i=16, j=2, k=8}>}
// CHECK: stablehlo.reshape %{{.*}}#2 {sdy.sharding_rule = #sdy.op_sharding_rule<([k, ij])->([i, jk]) {i=16, j=2, k=8}>}
// PROPAGATED-LABEL: func.func @written
// PROPAGATED: stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"data"}]>]>}
// PROPAGATED: stablehlo.reshape %{{.*}}#2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}
func.func @written(%x: tensor<16x16xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<16x16xf32> {
  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<8> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<8x32xf32>
  %parts = stablehlo.reshape %x : (tensor<16x16xbf16>) -> tensor<8x32xbf16>
  %wide = stablehlo.convert %parts : (tensor<8x32xbf16>) -> tensor<8x32xf32>
  %r:3 = stablehlo.while(%all = %wide, %i = %first, %out = %start) : tensor<8x32xf32>, tensor<i32>, tensor<8x32xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %part = stablehlo.dynamic_slice %all, %i, %first, sizes = [1, 32] : (tensor<8x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
      %sine = stablehlo.sine %part : tensor<1x32xf32>
      %with = stablehlo.dynamic_update_slice %out, %sine, %i, %first : (tensor<8x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<8x32xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %all, %next, %with : tensor<8x32xf32>, tensor<i32>, tensor<8x32xf32>
    }
  %merged = stablehlo.reshape %r#2 : (tensor<8x32xf32>) -> tensor<16x16xf32>
  return %merged : tensor<16x16xf32>
}

// Unchanged: a loop that reads two elements at a time, one that changes the tensor, a use outside of the loop, a
// dimension that the reshape keeps, and a rule of the user.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: stablehlo.reshape %arg0 : (
// CHECK: stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([ij])->([i, j]) {i=4, j=4}, custom>}
func.func @others(%x: tensor<16xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<4> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<1x4xf32>
  %a = stablehlo.reshape %x : (tensor<16xf32>) -> tensor<4x4xf32>
  %b = stablehlo.reshape %x : (tensor<16xf32>) -> tensor<4x4xf32>
  %c = stablehlo.reshape %x : (tensor<16xf32>) -> tensor<4x4xf32>
  %d = stablehlo.reshape %x : (tensor<16xf32>) -> tensor<16x1xf32>
  %e = stablehlo.reshape %x {sdy.sharding_rule = #sdy.op_sharding_rule<([ij])->([i, j]) {i=4, j=4}, custom>} : (tensor<16xf32>) -> tensor<4x4xf32>
  %r:7 = stablehlo.while(%i = %first, %a1 = %a, %b1 = %b, %c1 = %c, %d1 = %d, %e1 = %e, %s = %zero) : tensor<i32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<16x1xf32>, tensor<4x4xf32>, tensor<1x4xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %two = stablehlo.dynamic_slice %a1, %i, %first, sizes = [2, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
      %half = stablehlo.slice %two [0:1, 0:4] : (tensor<2x4xf32>) -> tensor<1x4xf32>
      %of_b = stablehlo.dynamic_slice %b1, %i, %first, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %new_b = stablehlo.negate %b1 : tensor<4x4xf32>
      %of_c = stablehlo.dynamic_slice %c1, %i, %first, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %of_d = stablehlo.dynamic_slice %d1, %i, %first, sizes = [1, 1] : (tensor<16x1xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
      %of_e = stablehlo.dynamic_slice %e1, %i, %first, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %row = stablehlo.broadcast_in_dim %of_d, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x4xf32>
      %0 = stablehlo.add %half, %of_b : tensor<1x4xf32>
      %1 = stablehlo.add %0, %of_c : tensor<1x4xf32>
      %2 = stablehlo.add %1, %row : tensor<1x4xf32>
      %3 = stablehlo.multiply %2, %of_e : tensor<1x4xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %a1, %new_b, %c1, %d1, %e1, %3 : tensor<i32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<16x1xf32>, tensor<4x4xf32>, tensor<1x4xf32>
    }
  return %c, %r#2 : tensor<4x4xf32>, tensor<4x4xf32>
}
