shard.grid @grid(shape = 2)

func.func @send(%a: tensor<4xf32>) -> tensor<4xf32> {
  %me = shard.process_linear_index on @grid : index
  %sent = shard.send %a on @grid grid_axes = [0] destination = [%me] : (tensor<4xf32>, index) -> tensor<4xf32>
  %got = shard.recv %sent on @grid grid_axes = [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %got : tensor<4xf32>
}

func.func @root(%a: tensor<4xf32>) -> tensor<4xf32> {
  %two = arith.constant 2 : index
  %got = shard.broadcast %a on @grid grid_axes = [0] root = [%two] : (tensor<4xf32>, index) -> tensor<4xf32>
  return %got : tensor<4xf32>
}
