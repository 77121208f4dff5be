// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s --check-prefix=LOCAL

// TOSA's ops on partly filled shards: operands that are sizes become those of the shards, and a bias is counted once.
// Only sums of channels and the dimension that argmax searches are communicated.
// CHECK: result
// CHECK-COUNT-6: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<7x5x6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}, {"y"}]>}, %w: tensor<4x3x3x8xf32>, %b: tensor<4xf32>) -> (tensor<7x5x6x4xf32>, tensor<7x5x6xi32>, tensor<7x5x3x8xf32>, tensor<7x30x8xf32>, tensor<7x5x1x8xf32>, tensor<7x7x6x8xf32>) {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  // LOCAL: arith.select %{{.*}}, %arg2
  // LOCAL: tosa.conv2d {{.*}} -> tensor<4x5x6x4xf32>
  // LOCAL: shard.all_reduce
  %c = tosa.conv2d %a, %w, %b, %z, %z {acc_type = f32, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<7x5x6x8xf32>, tensor<4x3x3x8xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<7x5x6x4xf32>
  // LOCAL: shard.all_gather
  // LOCAL: tosa.argmax
  // LOCAL-NOT: shard.
  // LOCAL: return
  %r = tosa.argmax %a {axis = 3 : i32} : (tensor<7x5x6x8xf32>) -> tensor<7x5x6xi32>
  %s0 = tosa.const_shape {values = dense<[0, 0, 2, 0]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %s1 = tosa.const_shape {values = dense<[7, 5, 3, 8]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %s = tosa.slice %a, %s0, %s1 : (tensor<7x5x6x8xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<7x5x3x8xf32>
  %q = tosa.const_shape {values = dense<[7, 30, 8]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %rr = tosa.reshape %a, %q : (tensor<7x5x6x8xf32>, !tosa.shape<3>) -> tensor<7x30x8xf32>
  %p = tosa.reduce_product %a {axis = 2 : i32} : (tensor<7x5x6x8xf32>) -> tensor<7x5x1x8xf32>
  %ps = tosa.const_shape {values = dense<[0, 0, 1, 1, 0, 0, 0, 0]> : tensor<8xindex>} : () -> !tosa.shape<8>
  %pp = tosa.pad %a, %ps, %z : (tensor<7x5x6x8xf32>, !tosa.shape<8>, tensor<1xf32>) -> tensor<7x7x6x8xf32>
  return %c, %r, %s, %rr, %p, %pp : tensor<7x5x6x4xf32>, tensor<7x5x6xi32>, tensor<7x5x3x8xf32>, tensor<7x30x8xf32>, tensor<7x5x1x8xf32>, tensor<7x7x6x8xf32>
}
