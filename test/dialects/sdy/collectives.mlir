// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>

// CHECK-LABEL: func @all_gather
func.func @all_gather(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y"}, {"x"}]>}) -> tensor<16x16xf32> {
  // The minor part of y is gathered, and the major part stays.
  // CHECK: %[[G:.*]] = sdy.all_gather [{"y":(2)2}, {}] %arg0 out_sharding=<@mesh, [{"z", "y":(1)2}, {"x"}]> : tensor<16x16xf32>
  %0 = sdy.all_gather [{"y":(2)2}, {}] %a out_sharding=<@mesh, [{"z", "y":(1)2}, {"x"}]> : tensor<16x16xf32>
  // CHECK: sdy.all_gather [{"z", "y":(1)2}, {"x"}] %[[G]] out_sharding=<@mesh, [{}, {}]> {note} : tensor<16x16xf32>
  %1 = sdy.all_gather [{"z", "y":(1)2}, {"x"}] %0 out_sharding=<@mesh, [{}, {}]> {note} : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}

// CHECK-LABEL: func @all_slice
func.func @all_slice(%a: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // An operand without a sharding is replicated.
  // CHECK: %[[S:.*]] = sdy.all_slice [{"y":(1)2}, {}] %arg0 out_sharding=<@mesh, [{"y":(1)2}, {}]>
  %0 = sdy.all_slice [{"y":(1)2}, {}] %a out_sharding=<@mesh, [{"y":(1)2}, {}]> : tensor<16x16xf32>
  // The two parts of y merge.
  // CHECK: sdy.all_slice [{"y":(2)2, "x"}, {"z"}] %[[S]] out_sharding=<@mesh, [{"y", "x"}, {"z"}]>
  %1 = sdy.all_slice [{"y":(2)2, "x"}, {"z"}] %0 out_sharding=<@mesh, [{"y", "x"}, {"z"}]> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}

// CHECK-LABEL: func @all_to_all
func.func @all_to_all(%a: tensor<16x16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "z"}, {}, {"y"}, {}]>}) -> tensor<16x16x16x16xf32> {
  // CHECK: %[[A:.*]] = sdy.all_to_all [{"z"}: 0->3, {"y":(2)2}: 2->1] %arg0 out_sharding=<@mesh, [{"x"}, {"y":(2)2}, {"y":(1)2}, {"z"}]>
  %0 = sdy.all_to_all [{"z"}: 0->3, {"y":(2)2}: 2->1] %a out_sharding=<@mesh, [{"x"}, {"y":(2)2}, {"y":(1)2}, {"z"}]> : tensor<16x16x16x16xf32>
  // CHECK: sdy.all_to_all [{"y":(2)2}: 1->2] %[[A]] out_sharding=<@mesh, [{"x"}, {}, {"y"}, {"z"}]>
  %1 = sdy.all_to_all [{"y":(2)2}: 1->2] %0 out_sharding=<@mesh, [{"x"}, {}, {"y"}, {"z"}]> : tensor<16x16x16x16xf32>
  return %1 : tensor<16x16x16x16xf32>
}

sdy.mesh @mesh_backwards = <["x"=2, "y"=4, "z"=2], device_ids=[15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>

// CHECK-LABEL: func @collective_permute
func.func @collective_permute(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "z"}, {}]>}) -> tensor<16x16xf32> {
  // CHECK: %[[P:.*]] = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y"}, {}]>
  %0 = sdy.collective_permute %a out_sharding=<@mesh, [{"y"}, {}]> : tensor<16x16xf32>
  // CHECK: sdy.collective_permute %[[P]] out_sharding=<@mesh_backwards, [{"z", "y":(2)2}, {}]>
  %1 = sdy.collective_permute %0 out_sharding=<@mesh_backwards, [{"z", "y":(2)2}, {}]> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}

// CHECK-LABEL: func @all_reduce
func.func @all_reduce(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced=max{"y", "z"}>}, %b: tensor<16xf32>) -> tensor<16x16xf32> {
  // CHECK: sdy.all_reduce max {"y":(2)2, "z"} %arg0 out_sharding=<@mesh, [{"x"}, {}], unreduced=max{"y":(1)2}>
  %0 = sdy.all_reduce max {"y":(2)2, "z"} %a out_sharding=<@mesh, [{"x"}, {}], unreduced=max{"y":(1)2}> : tensor<16x16xf32>
  // CHECK: sdy.all_reduce {"x", "z"} %arg1 out_sharding=<@mesh, [{?}], replicated={"x"}> {note} : tensor<16xf32>
  %1 = sdy.all_reduce {"x", "z"} %b out_sharding=<@mesh, [{?}], replicated={"x"}> {note} : tensor<16xf32>
  // CHECK: sdy.all_reduce min {} %arg1 out_sharding=<@mesh, [{}]> : tensor<16xf32>
  %2 = sdy.all_reduce min {} %b out_sharding=<@mesh, [{}]> : tensor<16xf32>
  return %0 : tensor<16x16xf32>
}

// CHECK-LABEL: func @reduce_scatter
func.func @reduce_scatter(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>}, %b: tensor<16xf32>) -> tensor<16x16xf32> {
  // CHECK: sdy.reduce_scatter [{"y":(1)2}, {"y":(2)2}] %arg0 out_sharding=<@mesh, [{"x", "y":(1)2}, {"y":(2)2}]>
  %0 = sdy.reduce_scatter [{"y":(1)2}, {"y":(2)2}] %a out_sharding=<@mesh, [{"x", "y":(1)2}, {"y":(2)2}]> : tensor<16x16xf32>
  // CHECK: sdy.reduce_scatter min [{"z", "x"}] %arg1 out_sharding=<@mesh, [{"z", "x"}]> {note} : tensor<16xf32>
  %1 = sdy.reduce_scatter min [{"z", "x"}] %b out_sharding=<@mesh, [{"z", "x"}]> {note} : tensor<16xf32>
  return %0 : tensor<16x16xf32>
}

// CHECK-LABEL: func @to_unreduced
func.func @to_unreduced(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"z", "y":(1)2}], replicated={"y":(2)2}>}) -> tensor<16x16xf32> {
  // CHECK: %[[S:.*]] = sdy.sharded_to_unreduced [{"x"}, {"y":(1)2}] %arg0 out_sharding=<@mesh, [{}, {"z"}], unreduced={"x", "y":(1)2}>
  %0 = sdy.sharded_to_unreduced [{"x"}, {"y":(1)2}] %a out_sharding=<@mesh, [{}, {"z"}], unreduced={"x", "y":(1)2}> : tensor<16x16xf32>
  // CHECK: sdy.replicated_to_unreduced {"y":(2)2} %[[S]] out_sharding=<@mesh, [{}, {"z"}], unreduced={"x", "y"}>
  %1 = sdy.replicated_to_unreduced {"y":(2)2} %0 out_sharding=<@mesh, [{}, {"z"}], unreduced={"x", "y"}> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}

// The sharding of the operand is on a data-flow edge or on an enclosing computation.
// CHECK-LABEL: func @operand_shardings
func.func @operand_shardings(%a: tensor<16xf32>, %i: tensor<i32>) -> tensor<16xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<8xf32>) {
    // CHECK: sdy.all_gather [{"y"}] %arg2 out_sharding=<@mesh, [{}]> : tensor<8xf32>
    %1 = sdy.all_gather [{"y"}] %b out_sharding=<@mesh, [{}]> : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<16xf32>) -> tensor<16xf32>
  %2 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x", "z"}]> : tensor<16xf32>
  // CHECK: sdy.all_gather [{"z"}]
  %3 = sdy.all_gather [{"z"}] %2 out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  %4:2 = stablehlo.while(%j = %i, %c = %3) : tensor<i32>, tensor<16xf32>
      attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}]>]>} cond {
    %5 = stablehlo.compare EQ, %j, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  } do {
    // CHECK: sdy.all_slice [{"y"}]
    %6 = sdy.all_slice [{"y"}] %c out_sharding=<@mesh, [{"x", "y"}]> : tensor<16xf32>
    stablehlo.return %j, %6 : tensor<i32>, tensor<16xf32>
  }
  return %4#1 : tensor<16xf32>
}
