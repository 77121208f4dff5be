sdy.mesh @mesh = <["x"=4]>

// Ten rows on four devices: three on each, and one on the last.
func.func @main(%a: tensor<10x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<6x5xf32>) -> (tensor<10x5xf32>, tensor<5xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.dot %a, %b : (tensor<10x6xf32>, tensor<6x5xf32>) -> tensor<10x5xf32>
  %exp = stablehlo.exponential %c : tensor<10x5xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<10x5xf32>, tensor<f32>) -> tensor<5xf32>
  return %exp, %sum : tensor<10x5xf32>, tensor<5xf32>
}
