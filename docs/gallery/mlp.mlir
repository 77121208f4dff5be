sdy.mesh @mesh = <["data"=2, "model"=2]>

func.func @main(%x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %up: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                %down: tensor<256x128xf32>) -> tensor<64x128xf32> {
  %hidden = stablehlo.dot %x, %up : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %active = stablehlo.tanh %hidden : tensor<64x256xf32>
  %y = stablehlo.dot %active, %down : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}
