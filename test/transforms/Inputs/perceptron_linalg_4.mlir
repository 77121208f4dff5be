// The hidden layer of the perceptron is sharded over four devices.

sdy.mesh @mesh = <["model"=4]>

#rows_and_columns = affine_map<(row, column) -> (row, column)>
#columns = affine_map<(row, column) -> (column)>

func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
    %w1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %b1: tensor<32xf32>,
    %w2: tensor<32x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32

  // The hidden layer: relu(x w1 + b1).
  %hidden_empty = tensor.empty() : tensor<8x32xf32>
  %hidden_zeros = linalg.fill ins(%zero : f32) outs(%hidden_empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %product = linalg.matmul ins(%x, %w1 : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%hidden_zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  %biased = linalg.generic {
      indexing_maps = [#rows_and_columns, #columns, #rows_and_columns],
      iterator_types = ["parallel", "parallel"]
    } ins(%product, %b1 : tensor<8x32xf32>, tensor<32xf32>) outs(%hidden_empty : tensor<8x32xf32>) {
    ^bb0(%value: f32, %bias: f32, %unused: f32):
      %sum = arith.addf %value, %bias : f32
      linalg.yield %sum : f32
    } -> tensor<8x32xf32>
  %hidden = linalg.max ins(%biased, %hidden_zeros : tensor<8x32xf32>, tensor<8x32xf32>)
      outs(%hidden_empty : tensor<8x32xf32>) -> tensor<8x32xf32>

  // The output layer. Its contracted dimension is sharded, so devices along "model" add their partial sums.
  %output_empty = tensor.empty() : tensor<8x8xf32>
  %output_zeros = linalg.fill ins(%zero : f32) outs(%output_empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %output = linalg.matmul ins(%hidden, %w2 : tensor<8x32xf32>, tensor<32x8xf32>)
      outs(%output_zeros : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %output : tensor<8x8xf32>
}
