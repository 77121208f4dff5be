// The layer of docs/examples/weight_stationary.mlir with upstream's annotations, including the required annotations on
// intermediate values, which are placed by hand.

shard.grid @grid(shape = 2x2)

func.func @main(%input: tensor<8x32xf32>, %w_in: tensor<32x128xf32>, %w_out: tensor<128x32xf32>) -> tensor<8x32xf32> {
  %of_model = shard.sharding @grid split_axes = [[], [0, 1]] : !shard.sharding
  %of_w_in = shard.sharding @grid split_axes = [[0], [1]] : !shard.sharding
  %of_w_out = shard.sharding @grid split_axes = [[1], [0]] : !shard.sharding
  // The shardings of the activations for each contraction, and of its scattered partial sums.
  %of_input = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %of_hidden = shard.sharding @grid split_axes = [[], [1]] : !shard.sharding
  %of_scattered = shard.sharding @grid split_axes = [[], [1, 0]] : !shard.sharding
  %input_made = shard.shard %input to %of_model : tensor<8x32xf32>
  %input_used = shard.shard %input_made to %of_input annotate_for_users : tensor<8x32xf32>
  %w_in_made = shard.shard %w_in to %of_w_in : tensor<32x128xf32>
  %w_in_used = shard.shard %w_in_made to %of_w_in annotate_for_users : tensor<32x128xf32>
  %w_out_made = shard.shard %w_out to %of_w_out : tensor<128x32xf32>
  %w_out_used = shard.shard %w_out_made to %of_w_out annotate_for_users : tensor<128x32xf32>
  %zero = arith.constant 0.0 : f32

  %hidden_empty = tensor.empty() : tensor<8x128xf32>
  %hidden_zeros = linalg.fill ins(%zero : f32) outs(%hidden_empty : tensor<8x128xf32>) -> tensor<8x128xf32>
  %product = linalg.matmul ins(%input_used, %w_in_used : tensor<8x32xf32>, tensor<32x128xf32>)
      outs(%hidden_zeros : tensor<8x128xf32>) -> tensor<8x128xf32>
  %product_made = shard.shard %product to %of_hidden : tensor<8x128xf32>
  %product_used = shard.shard %product_made to %of_scattered annotate_for_users : tensor<8x128xf32>
  %hidden = linalg.max ins(%product_used, %hidden_zeros : tensor<8x128xf32>, tensor<8x128xf32>)
      outs(%hidden_empty : tensor<8x128xf32>) -> tensor<8x128xf32>
  %hidden_made = shard.shard %hidden to %of_scattered : tensor<8x128xf32>
  %hidden_used = shard.shard %hidden_made to %of_hidden annotate_for_users : tensor<8x128xf32>

  %output_empty = tensor.empty() : tensor<8x32xf32>
  %output_zeros = linalg.fill ins(%zero : f32) outs(%output_empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %output = linalg.matmul ins(%hidden_used, %w_out_used : tensor<8x128xf32>, tensor<128x32xf32>)
      outs(%output_zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  %output_made = shard.shard %output to %of_input : tensor<8x32xf32>
  %output_used = shard.shard %output_made to %of_model annotate_for_users : tensor<8x32xf32>
  return %output_used : tensor<8x32xf32>
}
