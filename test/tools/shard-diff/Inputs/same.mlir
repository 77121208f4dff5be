sdy.mesh @grid = <["data"=2, "model"=4]>

// A variant with other names and another order.
func.func @entry(
    %input: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@grid, [{"data"}, {}]>},
    %up: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@grid, [{}, {"model"}]>},
    %down: tensor<256x128xf32>) -> tensor<64x128xf32> {
  %other = stablehlo.abs %input : tensor<64x128xf32>
  %hidden = stablehlo.dot %input, %up : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %back = stablehlo.dot %hidden, %down : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %sum = stablehlo.add %back, %other : tensor<64x128xf32>
  return %sum : tensor<64x128xf32>
}
