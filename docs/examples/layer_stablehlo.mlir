// A layer of which the argument and the product are annotated, and nothing else.

sdy.mesh @mesh = <["data"=4, "model"=2]>

func.func @layer(
    %x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {?}]>},
    %w: tensor<64x32xf32>) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"model"}]> : tensor<16x32xf32>
  %2 = stablehlo.tanh %1 : tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}
