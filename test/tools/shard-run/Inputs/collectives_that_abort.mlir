shard.grid @grid(shape = 2)

func.func @send(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %me = shard.process_linear_index on @grid : index
  %everywhere = arith.cmpi uge, %me, %zero : index
  %sent = scf.if %everywhere -> tensor<4xf32> {
    %0 = shard.send %a on @grid grid_axes = [0] destination = [1] : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  %got = shard.recv %sent on @grid grid_axes = [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %got : tensor<4xf32>
}

func.func @root(%a: tensor<4xf32>) -> tensor<4xf32> {
  %two = arith.constant 2 : index
  %got = shard.broadcast %a on @grid grid_axes = [0] root = [%two] : (tensor<4xf32>, index) -> tensor<4xf32>
  return %got : tensor<4xf32>
}
