// The feed-forward layer of a transformer, two-dimensional weight-stationary (Pope and others 2022, arXiv:2211.05102,
// figure 2b): weights never move. Only the input, the weights and the output are annotated, as the paper lays them out
// with its axes y and z taken as one.

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(
    %input: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>},
    %w_in: tensor<32x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %w_out: tensor<128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>})
    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>}) {
  %zero = arith.constant 0.0 : f32

  %hidden_empty = tensor.empty() : tensor<8x128xf32>
  %hidden_zeros = linalg.fill ins(%zero : f32) outs(%hidden_empty : tensor<8x128xf32>) -> tensor<8x128xf32>
  %product = linalg.matmul ins(%input, %w_in : tensor<8x32xf32>, tensor<32x128xf32>)
      outs(%hidden_zeros : tensor<8x128xf32>) -> tensor<8x128xf32>
  %hidden = linalg.max ins(%product, %hidden_zeros : tensor<8x128xf32>, tensor<8x128xf32>)
      outs(%hidden_empty : tensor<8x128xf32>) -> tensor<8x128xf32>

  %output_empty = tensor.empty() : tensor<8x32xf32>
  %output_zeros = linalg.fill ins(%zero : f32) outs(%output_empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %output = linalg.matmul ins(%hidden, %w_out : tensor<8x128xf32>, tensor<128x32xf32>)
      outs(%output_zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %output : tensor<8x32xf32>
}
