sdy.mesh @mesh = <["data"=2, "model"=2]>

// Rows of a table that is sharded along the vocabulary.
func.func @main(%table: tensor<1024x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
                %tokens: tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
    -> tensor<16x8x32xf32> {
  %rows = "stablehlo.gather"(%table, %tokens) <{
    dimension_numbers = #stablehlo.gather<
      offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 32>
  }> : (tensor<1024x32xf32>, tensor<16x8xi32>) -> tensor<16x8x32xf32>
  return %rows : tensor<16x8x32xf32>
}
