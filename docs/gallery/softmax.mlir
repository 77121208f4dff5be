#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>

sdy.mesh @mesh = <["data"=2, "vocabulary"=3]>

// The softmax of logits whose columns are sharded, as behind the last product of a language model.
func.func @main(%logits: tensor<8x48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"vocabulary"}]>})
    -> tensor<8x48xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<8xf32>
  %matrix = tensor.empty() : tensor<8x48xf32>
  %no_max = linalg.fill ins(%lowest : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.reduce { arith.maximumf } ins(%logits : tensor<8x48xf32>) outs(%no_max : tensor<8xf32>) dimensions = [1]
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%logits, %max : tensor<8x48xf32>, tensor<8xf32>) outs(%matrix : tensor<8x48xf32>) {
  ^bb0(%logit: f32, %most: f32, %out: f32):
    %below = arith.subf %logit, %most : f32
    %one = math.exp %below : f32
    linalg.yield %one : f32
  } -> tensor<8x48xf32>
  %no_sum = linalg.fill ins(%zero : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<8x48xf32>) outs(%no_sum : tensor<8xf32>) dimensions = [1]
  %softmax = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<8x48xf32>, tensor<8xf32>) outs(%matrix : tensor<8x48xf32>) {
  ^bb0(%one: f32, %total: f32, %out: f32):
    %part = arith.divf %one, %total : f32
    linalg.yield %part : f32
  } -> tensor<8x48xf32>
  return %softmax : tensor<8x48xf32>
}
