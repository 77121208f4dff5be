// RUN: shard-opt %s --canonicalize | FileCheck %s
// RUN: shard-opt %s --canonicalize='enable-patterns=sdy-collective' | FileCheck %s --check-prefix=SHARDY

sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>

// CHECK-LABEL: func @gathers
// CHECK-NEXT: %[[ALL:.*]] = sdy.all_gather [{"x", "y"}, {"z"}] %arg0 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: return %[[ALL]]
// SHARDY-LABEL: func @gathers
// SHARDY-COUNT-2: sdy.all_gather
func.func @gathers(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {"z"}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_gather [{"y":(2)2}, {}] %a out_sharding=<@mesh, [{"x", "y":(1)2}, {"z"}]> : tensor<8x8xf32>
  %1 = sdy.all_gather [{"x", "y":(1)2}, {"z"}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func @gathered_for_others_too
// CHECK-NEXT: sdy.all_gather [{"y"}, {}] %arg0
// CHECK-NEXT: sdy.all_gather [{"x"}, {}]
func.func @gathered_for_others_too(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.all_gather [{"y"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_gather [{"x"}, {}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func @slices
// CHECK-NEXT: sdy.all_slice [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT: return
func.func @slices(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.all_slice [{"x"}, {"y":(1)2}] %a out_sharding=<@mesh, [{"x"}, {"y":(1)2}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{}, {"y":(2)2}] %0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func @permutes
// CHECK-NEXT: sdy.collective_permute %arg0 out_sharding=<@mesh, [{"z"}, {}]>
// CHECK-NEXT: return
func.func @permutes(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.collective_permute %a out_sharding=<@mesh, [{"y":(1)2}, {}]> : tensor<8x8xf32>
  %1 = sdy.collective_permute %0 out_sharding=<@mesh, [{"z"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func @there_and_back
// CHECK-NEXT: return %arg0
func.func @there_and_back(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.collective_permute %a out_sharding=<@mesh, [{"z"}, {}]> : tensor<8x8xf32>
  %1 = sdy.collective_permute %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %2 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %3 = sdy.all_to_all [{"x"}: 1->0] %2 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// "z" and half of "y" stay in place; the rest of "y" is gathered, and another axis is sliced.
// CHECK-LABEL: func @slice_of_what_was_gathered
// CHECK-NEXT: %[[G:.*]] = sdy.all_gather [{"y":(2)2}, {}] %arg0 out_sharding=<@mesh, [{"z", "y":(1)2}, {}]>
// CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{}, {"x"}] %[[G]] out_sharding=<@mesh, [{"z", "y":(1)2}, {"x"}]>
// CHECK-NEXT: return %[[S]]
func.func @slice_of_what_was_gathered(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_gather [{"z", "y"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"z", "y":(1)2}, {"x"}] %0 out_sharding=<@mesh, [{"z", "y":(1)2}, {"x"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// "x" cannot stay in place, because gathers remove the last axes and the result has "z" as the first one.
// CHECK-LABEL: func @slice_of_something_else
// CHECK-NEXT: sdy.all_gather [{"x", "y"}, {}]
// CHECK-NEXT: sdy.all_slice [{"z"}, {"x"}]
func.func @slice_of_something_else(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_gather [{"x", "y"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"z"}, {"x"}] %0 out_sharding=<@mesh, [{"z"}, {"x"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
