sdy.mesh @mesh = <["rows"=2, "columns"=2]>

// Two convolutions of 3x3 on images whose rows and columns are sharded.
func.func @main(
    %image: tensor<1x4x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"rows"}, {"columns"}]>},
    %first: tensor<8x4x3x3xf32>, %second: tensor<8x8x3x3xf32>) -> tensor<1x8x32x32xf32> {
  %edges = stablehlo.convolution(%image, %first)
      dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x4x32x32xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x32x32xf32>
  %active = stablehlo.tanh %edges : tensor<1x8x32x32xf32>
  %corners = stablehlo.convolution(%active, %second)
      dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x8x32x32xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x32x32xf32>
  return %corners : tensor<1x8x32x32xf32>
}
