sdy.mesh @mesh = <["model"=4]>

// Between layers the sequence is sharded, within a layer the hidden dimension is.
func.func @main(%x: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
                %up: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                %down: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> (tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) {
  %normal = stablehlo.tanh %x : tensor<128x64xf32>
  %part = sdy.sharding_constraint %normal <@mesh, [{"model"}, {}]> : tensor<128x64xf32>
  %sequence = sdy.sharding_constraint %part <@mesh, [{}, {}]> : tensor<128x64xf32>
  %hidden = stablehlo.dot %sequence, %up : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %active = stablehlo.logistic %hidden : tensor<128x256xf32>
  %product = stablehlo.dot %active, %down : (tensor<128x256xf32>, tensor<256x64xf32>) -> tensor<128x64xf32>
  %y = stablehlo.add %x, %product : tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}
