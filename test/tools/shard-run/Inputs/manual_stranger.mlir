// An unknown call inside a manual computation.
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<2x3xf32>) {
    %1 = stablehlo.custom_call @stranger(%b) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    sdy.return %1 : tensor<2x3xf32>
  } : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
