// RUN: shard-opt %s --shard-spmdize --split-input-file | FileCheck %s
// RUN: shard-opt %s --shard-spmdize --split-input-file --shard-communication-report -o /dev/null 2>&1 | FileCheck %s --check-prefix=BYTES

// On a mesh of five axes a reshard is two rounds of tiles: each device receives from two others, without a gather.
// CHECK-LABEL: shard.grid @mesh(shape = 4x4x2x8x2)
// CHECK-NOT: all_gather
// CHECK: shard.all_slice %arg0 on @mesh grid_axes = [4] slice_axis = 1
// CHECK-COUNT-2: shard.send {{.*}} : (tensor<32x128x512xbf16>,
// CHECK-NOT: shard.send
// BYTES: 2 collectives {{ +}}8,388,608 B
sdy.mesh @mesh = <["data"=4, "fsdp"=4, "seq"=2, "model"=8, "expert"=2]>
func.func @main(%a: tensor<512x1024x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "fsdp"}, {"seq"}, {"model"}]>})
    -> (tensor<512x1024x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"expert", "data"}, {"model"}, {"fsdp", "seq"}]>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"expert", "data"}, {"model"}, {"fsdp", "seq"}]> : tensor<512x1024x4096xbf16>
  return %0 : tensor<512x1024x4096xbf16>
}

// -----

// If axes of equal sizes change places, their positions are swapped, and the groups exclude the other axes.
// CHECK-LABEL: shard.grid @swap(shape = 2x3x2)
// CHECK: %[[AT:.*]]:3 = shard.process_multi_index on @swap axes = [0, 1, 2]
// CHECK-NOT: arith
// CHECK: shard.send %arg0 on @swap grid_axes = [0, 2] destination = [%[[AT]]#2, %[[AT]]#0]
// CHECK: shard.recv %arg0 on @swap grid_axes = [0, 2] source = [%[[AT]]#2, %[[AT]]#0]
// BYTES: recv {{ +}}x=2 z=2 {{ +}}3 {{ +}}96 B {{ +}}576 B
sdy.mesh @swap = <["x"=2, "y"=3, "z"=2]>
func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@swap, [{"x"}, {"z"}]>})
    -> (tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@swap, [{"z"}, {"x"}]>}) {
  %0 = sdy.reshard %a <@swap, [{"z"}, {"x"}]> : tensor<8x12xf32>
  return %0 : tensor<8x12xf32>
}

// -----

// All-to-alls between two pairs of dimensions become one, in groups along the axes of both.
// CHECK-LABEL: shard.grid @two(shape = 2x2)
// CHECK: shard.all_to_all {{.*}} grid_axes = [0, 1] split_axis = 0 concat_axis = 0 : tensor<4x
// CHECK-NOT: shard.all_to_all
// BYTES: 1 collective {{ +}}50,331,648 B
sdy.mesh @two = <["x"=2, "y"=2]>
func.func @main(%a: tensor<64x64x128x128xf32> {sdy.sharding = #sdy.sharding<@two, [{"x"}, {"y"}, {}, {}]>})
    -> (tensor<64x64x128x128xf32> {sdy.sharding = #sdy.sharding<@two, [{}, {}, {"x"}, {"y"}]>}) {
  %0 = sdy.reshard %a <@two, [{}, {}, {"x"}, {"y"}]> : tensor<64x64x128x128xf32>
  return %0 : tensor<64x64x128x128xf32>
}
