// RUN: shard-opt %s --split-input-file --sdy-remove-size-one-axes | FileCheck %s

// CHECK: sdy.mesh @m = <["one"=1, "x"=2, "uno"=1, "y"=4]>
sdy.mesh @m = <["one"=1, "x"=2, "uno"=1, "y"=4]>

// A closed dimension without remaining axes has no priority.
// CHECK-LABEL: func.func @removed
// CHECK-SAME: sdy.sharding = #sdy.sharding<@m, [{"x"}p1, {?}p2, {}], replicated={"y"}>
// CHECK-SAME: -> (tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {?}], unreduced=max{"y"}>})
// CHECK: math.exp {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y":(1)2}, {}, {}]>]>}
func.func @removed(%a: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"one", "x"}p1, {"uno", ?}p2, {}], replicated={"y"}>})
    -> (tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"one"}p3, {}, {?}], unreduced=max{"uno", "y"}>}) {
  %0 = math.exp %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y":(1)2}, {"one"}, {}]>]>} : tensor<8x8x8xf32>
  return %0 : tensor<8x8x8xf32>
}

// The manual axes of a computation are not changed.
// CHECK-LABEL: func.func @manual
// CHECK: in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{"x"}]>] manual_axes={"one", "x"}
func.func @manual(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"one", "x"}]>] out_shardings=[<@m, [{"x"}], replicated={"one"}>] manual_axes={"one", "x"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Inlined meshes are not considered, because an earlier pass lifts them.
sdy.mesh @m = <["x"=2]>

// CHECK-LABEL: func.func @nothing_to_do
// CHECK-SAME: sdy.sharding = #sdy.sharding<mesh<["one"=1]>, [{"one"}]>
func.func @nothing_to_do(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["one"=1]>, [{"one"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
