// RUN: shard-opt --spmd-pipeline %s | FileCheck %s
// RUN: shard-run --function tiles %s
// RUN: shard-run --function inside %s
// RUN: shard-run --function padded %s
// RUN: shard-run --function winograd %s

sdy.mesh @mesh = <["x"=4]>

// Shards of tiles are shards of elements.
// CHECK-LABEL: func.func @tiles(%arg0: tensor<4x12xf32>)
// CHECK-NOT: all_gather
// CHECK: linalg.pack {{.*}} : tensor<4x12xf32> -> tensor<2x3x2x4xf32>
// CHECK: linalg.unpack {{.*}} : tensor<2x3x2x4xf32> -> tensor<4x12xf32>
func.func @tiles(%x: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x12xf32> {
  %e = tensor.empty() : tensor<8x3x2x4xf32>
  %p = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [2, 4] into %e : tensor<16x12xf32> -> tensor<8x3x2x4xf32>
  %s = tosa.add %p, %p : (tensor<8x3x2x4xf32>, tensor<8x3x2x4xf32>) -> tensor<8x3x2x4xf32>
  %u = tensor.empty() : tensor<16x12xf32>
  %0 = linalg.unpack %s inner_dims_pos = [0, 1] inner_tiles = [2, 4] into %u : tensor<8x3x2x4xf32> -> tensor<16x12xf32>
  return %0 : tensor<16x12xf32>
}

// A shard of the elements within tiles is not a shard of the dimension.
// CHECK-LABEL: func.func @inside
// CHECK: linalg.pack {{.*}} : tensor<16x12xf32> -> tensor<4x12x4xf32>
func.func @inside(%x: tensor<16x12xf32>)
    -> (tensor<4x12x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}) {
  %e = tensor.empty() : tensor<4x12x4xf32>
  %0 = linalg.pack %x inner_dims_pos = [0] inner_tiles = [4] into %e : tensor<16x12xf32> -> tensor<4x12x4xf32>
  return %0 : tensor<4x12x4xf32>
}

// CHECK-LABEL: func.func @padded
func.func @padded(%x: tensor<15x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x12x2xf32> {
  %f = arith.constant 7.0 : f32
  %e = tensor.empty() : tensor<8x12x2xf32>
  %0 = linalg.pack %x padding_value(%f : f32) inner_dims_pos = [0] inner_tiles = [2] into %e
    : tensor<15x12xf32> -> tensor<8x12x2xf32>
  return %0 : tensor<8x12x2xf32>
}

// Channels and images stay sharded through the transforms.
// CHECK-LABEL: func.func @winograd(%arg0: tensor<1x10x10x3xf32>)
// CHECK-NOT: all_gather
// CHECK: linalg.winograd_input_transform {{.*}} -> tensor<6x6x2x2x1x3xf32>
func.func @winograd(%x: tensor<4x10x10x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}, {}]>})
    -> tensor<6x6x2x2x4x3xf32> {
  %e = tensor.empty() : tensor<6x6x2x2x4x3xf32>
  %0 = linalg.winograd_input_transform fmr(F_4_3) ins(%x : tensor<4x10x10x3xf32>) outs(%e : tensor<6x6x2x2x4x3xf32>)
    -> tensor<6x6x2x2x4x3xf32>
  return %0 : tensor<6x6x2x2x4x3xf32>
}
