// One example of each op of tensor between tensors, for the table of rules and its tests.

func.func @bitcast(%a: tensor<4x8xf32>) -> tensor<4x8xi32> {
  %0 = tensor.bitcast %a : tensor<4x8xf32> to tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @cast(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.cast %a : tensor<4x8xf32> to tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @collapse_shape(%a: tensor<4x2x8xf32>) -> tensor<8x8xf32> {
  %0 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<4x2x8xf32> into tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func @concat(%a: tensor<4x8xf32>, %b: tensor<4x6xf32>) -> tensor<4x14xf32> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<4x14xf32>
  return %0 : tensor<4x14xf32>
}

func.func @expand_shape(%a: tensor<8x8xf32>) -> tensor<4x2x8xf32> {
  %0 = tensor.expand_shape %a [[0, 1], [2]] output_shape [4, 2, 8] : tensor<8x8xf32> into tensor<4x2x8xf32>
  return %0 : tensor<4x2x8xf32>
}

func.func @extract_slice(%a: tensor<4x8x6xf32>) -> tensor<8x2xf32> {
  %0 = tensor.extract_slice %a[0, 0, 1] [1, 8, 2] [1, 1, 2] : tensor<4x8x6xf32> to tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

func.func @gather(%a: tensor<4x8xf32>, %b: tensor<6x2x1xindex>) -> tensor<6x2x4x1xf32> {
  %0 = tensor.gather %a[%b] gather_dims([1]) : (tensor<4x8xf32>, tensor<6x2x1xindex>) -> tensor<6x2x4x1xf32>
  return %0 : tensor<6x2x4x1xf32>
}

func.func @insert(%a: f32, %b: tensor<4x8xf32>, %i: index) -> tensor<4x8xf32> {
  %0 = tensor.insert %a into %b[%i, %i] : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @insert_slice(%a: tensor<8x2xf32>, %b: tensor<4x8x6xf32>) -> tensor<4x8x6xf32> {
  %0 = tensor.insert_slice %a into %b[0, 0, 1] [1, 8, 2] [1, 1, 2] : tensor<8x2xf32> into tensor<4x8x6xf32>
  return %0 : tensor<4x8x6xf32>
}

func.func @pad(%a: tensor<4x8xf32>, %b: f32) -> tensor<4x12xf32> {
  %0 = tensor.pad %a low[0, 2] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %b : f32
  } : tensor<4x8xf32> to tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}

func.func @reshape(%a: tensor<4x8xf32>, %b: tensor<3xindex>) -> tensor<4x2x4xf32> {
  %0 = tensor.reshape %a(%b) : (tensor<4x8xf32>, tensor<3xindex>) -> tensor<4x2x4xf32>
  return %0 : tensor<4x2x4xf32>
}

func.func @scatter(%a: tensor<6x4x1xf32>, %b: tensor<4x8xf32>, %c: tensor<6x1xindex>) -> tensor<4x8xf32> {
  %0 = tensor.scatter %a into %b[%c] scatter_dims([1]) unique : (tensor<6x4x1xf32>, tensor<4x8xf32>, tensor<6x1xindex>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
