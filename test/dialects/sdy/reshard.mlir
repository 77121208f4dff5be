// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func @constraints
func.func @constraints(%a: tensor<8x16xf32>, %t: !stablehlo.token, %d: tensor<?x?xi8>) -> tensor<8x16xf32> {
  // CHECK: %[[C:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"x", ?}, {}]> : tensor<8x16xf32>
  %0 = sdy.sharding_constraint %a <@mesh, [{"x", ?}, {}]> : tensor<8x16xf32>
  // CHECK: sdy.sharding_constraint %[[C]] <@mesh, [{?}, {?}], replicated={"y":(2)2}, unreduced={"x"}> {note = 1 : i32} : tensor<8x16xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {?}], replicated={"y":(2)2}, unreduced={"x"}> {note = 1 : i32} : tensor<8x16xf32>
  // CHECK: sdy.sharding_constraint %arg1 <@mesh, []> : !stablehlo.token
  %2 = sdy.sharding_constraint %t <@mesh, []> : !stablehlo.token
  // CHECK: sdy.sharding_constraint %arg2 <mesh<["a"=3]>, [{"a"}, {}]> : tensor<?x?xi8>
  %3 = sdy.sharding_constraint %d <mesh<["a"=3]>, [{"a"}, {}]> : tensor<?x?xi8>
  return %1 : tensor<8x16xf32>
}

// CHECK-LABEL: func @reshards
func.func @reshards(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced=max{"y"}>}) -> tensor<8x16xf32> {
  // The unreduced axis is reduced, and another axis becomes unreduced by sum.
  // CHECK: sdy.reshard %arg0 <@mesh, [{}, {"y"}], unreduced={"x"}> : tensor<8x16xf32>
  %0 = sdy.reshard %a <@mesh, [{}, {"y"}], unreduced={"x"}> : tensor<8x16xf32>
  // A part of the axis stays unreduced.
  // CHECK: sdy.reshard %arg0 <@mesh, [{"y":(2)2}, {}], unreduced=max{"y":(1)2}> : tensor<8x16xf32>
  %1 = sdy.reshard %a <@mesh, [{"y":(2)2}, {}], unreduced=max{"y":(1)2}> : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
