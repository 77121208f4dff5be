// RUN: shard-opt %s --canonicalize | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2, "w"=2]>

// CHECK-LABEL: func @all_of_it
func.func @all_of_it(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>}) -> tensor<16x16xf32> {
  // CHECK-NEXT: %[[R:.*]] = sdy.reduce_scatter [{"y"}, {}] %arg0 out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<16x16xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  %1 = sdy.all_slice [{"y"}, {}] %0 out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}

// w is sliced and not reduced, z stays replicated.
// CHECK-LABEL: func @with_rest
func.func @with_rest(%a: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // CHECK-NEXT: %[[R:.*]] = sdy.reduce_scatter max [{"y":(1)2}, {"x"}] %arg0 out_sharding=<@mesh, [{"y":(1)2}, {"x"}], replicated={"z"}> : tensor<16x16xf32>
  // CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{}, {"w"}] %[[R]] out_sharding=<@mesh, [{"y":(1)2}, {"x", "w"}], replicated={"z"}> : tensor<16x16xf32>
  // CHECK-NEXT: return %[[S]]
  %0 = sdy.all_reduce max {"x", "y":(1)2} %a out_sharding=<@mesh, [{}, {}], replicated={"z"}> : tensor<16x16xf32>
  %1 = sdy.all_slice [{"y":(1)2}, {"x", "w"}] %0 out_sharding=<@mesh, [{"y":(1)2}, {"x", "w"}], replicated={"z"}> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}

// The part of y that is scattered follows the part that already shards the dimension.
// CHECK-LABEL: func @merging
func.func @merging(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}], unreduced={"y":(2)2}>}) -> tensor<16xf32> {
  // CHECK-NEXT: sdy.reduce_scatter [{"y":(2)2}] %arg0 out_sharding=<@mesh, [{"y"}]>
  %0 = sdy.all_reduce {"y":(2)2} %a out_sharding=<@mesh, [{"y":(1)2}]> : tensor<16xf32>
  %1 = sdy.all_slice [{"y":(2)2}] %0 out_sharding=<@mesh, [{"y"}]> : tensor<16xf32>
  return %1 : tensor<16xf32>
}

// CHECK-LABEL: func @sliced_alike
func.func @sliced_alike(%a: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  // CHECK-NEXT: %[[R:.*]] = sdy.reduce_scatter [{"x"}] %arg0
  // CHECK-NEXT: %[[N:.*]] = stablehlo.negate %[[R]]
  // CHECK-NEXT: return %[[N]], %[[R]]
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  %1 = sdy.all_slice [{"x"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  %2 = stablehlo.negate %1 : tensor<16xf32>
  %3 = sdy.all_slice [{"x"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  return %2, %3 : tensor<16xf32>, tensor<16xf32>
}

// The entire sum has another use.
// CHECK-LABEL: func @used_whole
func.func @used_whole(%a: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  // CHECK-NEXT: %[[R:.*]] = sdy.all_reduce {"x"} %arg0
  // CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{"x"}] %[[R]]
  // CHECK-NEXT: return %[[R]], %[[S]]
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  %1 = sdy.all_slice [{"x"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// z comes before the reduced x, so it would have to be sliced first.
// CHECK-LABEL: func @reduced_axis_behind
func.func @reduced_axis_behind(%a: tensor<16xf32>) -> tensor<16xf32> {
  // CHECK-NEXT: sdy.all_reduce
  // CHECK-NEXT: sdy.all_slice
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  %1 = sdy.all_slice [{"z", "x"}] %0 out_sharding=<@mesh, [{"z", "x"}]> : tensor<16xf32>
  return %1 : tensor<16xf32>
}

// x is reduced, but nothing is sliced along it.
// CHECK-LABEL: func @reduced_axis_left
func.func @reduced_axis_left(%a: tensor<16xf32>) -> tensor<16xf32> {
  // CHECK-NEXT: sdy.all_reduce
  // CHECK-NEXT: sdy.all_slice
  %0 = sdy.all_reduce {"x", "y"} %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  %1 = sdy.all_slice [{"y"}] %0 out_sharding=<@mesh, [{"y"}]> : tensor<16xf32>
  return %1 : tensor<16xf32>
}
