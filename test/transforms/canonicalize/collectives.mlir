// RUN: shard-opt %s --canonicalize | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
sdy.mesh @mesh_backwards = <["x"=2, "y"=4, "z"=2], device_ids=[15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>

// CHECK-LABEL: func @nothing_moves
func.func @nothing_moves(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: return %arg0
  %0 = sdy.all_gather [{}, {}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{}, {}] %0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %2 = sdy.all_reduce {} %1 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %3 = sdy.reduce_scatter [{}, {}] %2 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  // Open and closed dimensions have the same placement.
  %4 = sdy.collective_permute %3 out_sharding=<@mesh, [{"x", ?}, {"y"}]> : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}

// CHECK-LABEL: func @other_order_of_devices
func.func @other_order_of_devices(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.collective_permute %arg0 out_sharding=<@mesh_backwards, [{"x"}, {"y"}]>
  %0 = sdy.collective_permute %a out_sharding=<@mesh_backwards, [{"x"}, {"y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Collectives are not pure, so the gather stays.
// CHECK-LABEL: func @slice_of_gather
func.func @slice_of_gather(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "z"}, {"y"}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.all_gather
  // CHECK-NEXT: return %arg0
  %0 = sdy.all_gather [{"z"}, {"y"}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"z"}, {"y"}] %0 out_sharding=<@mesh, [{"x", "z"}, {"y"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func @slice_elsewhere
func.func @slice_elsewhere(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "z"}, {"y"}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[G:.*]] = sdy.all_gather [{"z"}, {}] %arg0
  // CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{}, {"z"}] %[[G]]
  // CHECK-NEXT: return %[[S]]
  %0 = sdy.all_gather [{"z"}, {}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{}, {"z"}] %0 out_sharding=<@mesh, [{"x"}, {"y", "z"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func @reduce_of_replicated
func.func @reduce_of_replicated(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<8xf32> {
  // CHECK: return %arg0
  %0 = sdy.replicated_to_unreduced {"x", "z"} %a out_sharding=<@mesh, [{"y"}], unreduced={"x", "z"}> : tensor<8xf32>
  %1 = sdy.all_reduce {"x", "z"} %0 out_sharding=<@mesh, [{"y"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Reducing some of the axes is not enough.
// CHECK-LABEL: func @reduce_some_of_replicated
func.func @reduce_some_of_replicated(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<8xf32> {
  // CHECK: %[[R:.*]] = sdy.all_reduce {"x"}
  // CHECK: return %[[R]]
  %0 = sdy.replicated_to_unreduced {"x", "z"} %a out_sharding=<@mesh, [{"y"}], unreduced={"x", "z"}> : tensor<8xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{"y"}], unreduced={"z"}> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// The reduction axes are those of all dimensions, in mesh order and merged.
// CHECK-LABEL: func @reduce_of_sharded
func.func @reduce_of_sharded(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y":(2)2}, {"y":(1)2}]>}) -> tensor<8x8xf32> {
  // CHECK: %[[G:.*]] = sdy.all_gather [{"z", "y":(2)2}, {"y":(1)2}] %arg0 out_sharding=<@mesh, [{}, {}]>
  // CHECK-NEXT: return %[[G]]
  %0 = sdy.sharded_to_unreduced [{"z", "y":(2)2}, {"y":(1)2}] %a out_sharding=<@mesh, [{}, {}], unreduced={"y", "z"}> : tensor<8x8xf32>
  %1 = sdy.all_reduce {"y", "z"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func @all_to_alls
func.func @all_to_alls(%a: tensor<8x8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}, {}]>}) -> tensor<8x8x8x8xf32> {
  // CHECK-NEXT: %[[A:.*]] = sdy.all_to_all [{"x"}: 0->2, {"y":(2)2}: 1->3] %arg0 out_sharding=<@mesh, [{}, {"y":(1)2}, {"x"}, {"y":(2)2}]>
  // CHECK-NEXT: return %[[A]]
  %0 = sdy.all_to_all [{"y":(2)2}: 1->3] %a out_sharding=<@mesh, [{"x"}, {"y":(1)2}, {}, {"y":(2)2}]> : tensor<8x8x8x8xf32>
  %1 = sdy.all_to_all [{"x"}: 0->2] %0 out_sharding=<@mesh, [{}, {"y":(1)2}, {"x"}, {"y":(2)2}]> : tensor<8x8x8x8xf32>
  // CHECK-NOT: 2->3
  %2 = sdy.all_to_all [{"x"}: 2->3] %1 out_sharding=<@mesh, [{}, {"y":(1)2}, {}, {"y":(2)2, "x"}]> : tensor<8x8x8x8xf32>
  return %1 : tensor<8x8x8x8xf32>
}

// All-to-alls that share a dimension, or whose intermediate value has another use, are not merged.
// CHECK-LABEL: func @all_to_alls_in_the_way
func.func @all_to_alls_in_the_way(%a: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>}) -> (tensor<8x8x8xf32>, tensor<8x8x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = sdy.all_to_all [{"x"}: 0->1] %arg0
  // CHECK-NEXT: %[[B:.*]] = sdy.all_to_all [{"x"}: 1->2] %[[A]]
  // CHECK-NEXT: %[[C:.*]] = sdy.all_to_all [{"y"}: 1->0] %[[B]]
  // CHECK-NEXT: return %[[B]], %[[C]]
  %0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"y", "x"}, {}]> : tensor<8x8x8xf32>
  %1 = sdy.all_to_all [{"x"}: 1->2] %0 out_sharding=<@mesh, [{}, {"y"}, {"x"}]> : tensor<8x8x8xf32>
  %2 = sdy.all_to_all [{"y"}: 1->0] %1 out_sharding=<@mesh, [{"y"}, {}, {"x"}]> : tensor<8x8x8xf32>
  return %1, %2 : tensor<8x8x8xf32>, tensor<8x8x8xf32>
}
