// RUN: shard-opt %s --sdy-manual-axes-cleanup | FileCheck %s

sdy.mesh @m = <["p"=2, "q"=4, "r"=2]>
sdy.mesh @none = <[]>

// CHECK-LABEL: func.func @sorted_and_said
// CHECK: in_shardings=[<@m, [{"r"}, {?}], replicated={"p"}>, <@m, [{"q"}, {"p"}], replicated={"r"}>]
// CHECK-SAME: out_shardings=[<@m, [{?}, {?}], replicated={"p", "r"}>] manual_axes={"p", "r"}
func.func @sorted_and_said(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a, %b) in_shardings=[<@m, [{"r"}, {?}]>, <@m, [{"q"}, {"p"}]>] out_shardings=[<@m, [{?}, {?}]>] manual_axes={"r", "p"} (%c: tensor<4x8xf32>, %d: tensor<8x4xf32>) {
    %1 = tensor.empty() : tensor<8x8xf32>
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The rest of a partly used axis is added as replicated; a sharding on the empty mesh moves to the mesh of the axes.
// CHECK-LABEL: func.func @rest_of_an_axis
// CHECK: in_shardings=[<@m, [{"q":(1)2}], replicated={"q":(2)2}>] out_shardings=[<@m, [{}], replicated={"q"}>] manual_axes={"q"}
func.func @rest_of_an_axis(%a: tensor<8xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"q":(1)2}]>] out_shardings=[<@none, [{}]>] manual_axes={"q"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A value that is not a tensor has no axes.
// CHECK-LABEL: func.func @token
// CHECK: in_shardings=[<@m, []>, <@m, [{?}], replicated={"p"}>] out_shardings=[<@m, []>] manual_axes={"p"}
func.func @token(%a: !stablehlo.token, %b: tensor<8xf32>) -> !stablehlo.token {
  %0 = sdy.manual_computation(%a, %b) in_shardings=[<@m, []>, <@m, [{?}]>] out_shardings=[<@m, []>] manual_axes={"p"} (%c: !stablehlo.token, %d: tensor<8xf32>) {
    sdy.return %c : !stablehlo.token
  } : (!stablehlo.token, tensor<8xf32>) -> !stablehlo.token
  return %0 : !stablehlo.token
}
