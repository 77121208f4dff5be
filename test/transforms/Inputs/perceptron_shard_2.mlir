// The batch of the perceptron is sharded over two devices, and the output is replicated.

shard.grid @grid(shape = 2)

#rows_and_columns = affine_map<(row, column) -> (row, column)>
#columns = affine_map<(row, column) -> (column)>

func.func @main(
    %x: tensor<8x16xf32>, %w1: tensor<16x32xf32>, %b1: tensor<32xf32>, %w2: tensor<32x8xf32>) -> tensor<8x8xf32> {
  %by_row = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %whole = shard.sharding @grid split_axes = [[]] : !shard.sharding
  %x_sharded = shard.shard %x to %by_row : tensor<8x16xf32>
  %w1_sharded = shard.shard %w1 to %whole : tensor<16x32xf32>
  %zero = arith.constant 0.0 : f32

  // The hidden layer: relu(x w1 + b1).
  %hidden_empty = tensor.empty() : tensor<8x32xf32>
  %hidden_zeros = linalg.fill ins(%zero : f32) outs(%hidden_empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %product = linalg.matmul ins(%x_sharded, %w1_sharded : tensor<8x16xf32>, tensor<16x32xf32>)
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
  %hidden_sharded = shard.shard %hidden to %by_row annotate_for_users : tensor<8x32xf32>

  // The output layer, whose result is replicated.
  %output_empty = tensor.empty() : tensor<8x8xf32>
  %output_zeros = linalg.fill ins(%zero : f32) outs(%output_empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %output = linalg.matmul ins(%hidden_sharded, %w2 : tensor<8x32xf32>, tensor<32x8xf32>)
      outs(%output_zeros : tensor<8x8xf32>) -> tensor<8x8xf32>
  %output_sharded = shard.shard %output to %whole annotate_for_users : tensor<8x8xf32>
  return %output_sharded : tensor<8x8xf32>
}
