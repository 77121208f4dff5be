// One example of each op of tosa between tensors, for the table of rules and its tests.

func.func @abs(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.abs"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @add(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.add"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @apply_scale(%a0: tensor<4x8xi32>, %a1: tensor<4x8xi32>, %a2: tensor<4x8xi8>) -> tensor<4x8xi32> {
  %0 = "tosa.apply_scale"(%a0, %a1, %a2) <{rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>}> : (tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi8>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @argmax(%a0: tensor<4x8xf32>) -> tensor<4xi32> {
  %0 = "tosa.argmax"(%a0) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

func.func @arithmetic_right_shift(%a0: tensor<4x8xi32>, %a1: tensor<1x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.arithmetic_right_shift"(%a0, %a1) <{round = false}> : (tensor<4x8xi32>, tensor<1x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @avg_pool2d(%a0: tensor<2x10x6x4xf32>, %a1: tensor<1xf32>, %a2: tensor<1xf32>) -> tensor<2x8x4x4xf32> {
  %0 = "tosa.avg_pool2d"(%a0, %a1, %a2) <{kernel = array<i64: 3, 3>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, acc_type = f32}> : (tensor<2x10x6x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x4x4xf32>
  return %0 : tensor<2x8x4x4xf32>
}

func.func @avg_pool2d_adaptive(%a0: tensor<2x10x6x4xf32>, %a1: tensor<1xf32>, %a2: tensor<1xf32>) -> tensor<2x8x4x4xf32> {
  %a3 = tosa.const_shape {values = dense<[3, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %a4 = tosa.const_shape {values = dense<[1, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %a5 = tosa.const_shape {values = dense<[0, 0, 0, 0]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %0 = "tosa.avg_pool2d_adaptive"(%a0, %a1, %a2, %a3, %a4, %a5) <{acc_type = f32}> : (tensor<2x10x6x4xf32>, tensor<1xf32>, tensor<1xf32>, !tosa.shape<2>, !tosa.shape<2>, !tosa.shape<4>) -> tensor<2x8x4x4xf32>
  return %0 : tensor<2x8x4x4xf32>
}

func.func @bitwise_and(%a0: tensor<4x8xi32>, %a1: tensor<1x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.bitwise_and"(%a0, %a1) : (tensor<4x8xi32>, tensor<1x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @bitwise_not(%a0: tensor<4x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.bitwise_not"(%a0) : (tensor<4x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @bitwise_or(%a0: tensor<4x8xi32>, %a1: tensor<1x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.bitwise_or"(%a0, %a1) : (tensor<4x8xi32>, tensor<1x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @bitwise_xor(%a0: tensor<4x8xi32>, %a1: tensor<1x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.bitwise_xor"(%a0, %a1) : (tensor<4x8xi32>, tensor<1x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @cast(%a0: tensor<4x8xf32>) -> tensor<4x8xi32> {
  %0 = "tosa.cast"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @cast_from_block_scaled(%a0: tensor<2x6x64xf8E4M3FN>, %a1: tensor<2x6x2xf8E8M0FNU>) -> tensor<2x6x64xf32> {
  %0 = "tosa.cast_from_block_scaled"(%a0, %a1) <{block_size = #tosa.block_size<BLOCK_SIZE_32>}> : (tensor<2x6x64xf8E4M3FN>, tensor<2x6x2xf8E8M0FNU>) -> tensor<2x6x64xf32>
  return %0 : tensor<2x6x64xf32>
}

func.func @cast_to_block_scaled(%a0: tensor<2x6x64xf32>) -> (tensor<2x6x64xf8E4M3FN>, tensor<2x6x2xf8E8M0FNU>) {
  %0:2 = "tosa.cast_to_block_scaled"(%a0) <{block_size = #tosa.block_size<BLOCK_SIZE_32>}> : (tensor<2x6x64xf32>) -> (tensor<2x6x64xf8E4M3FN>, tensor<2x6x2xf8E8M0FNU>)
  return %0#0, %0#1 : tensor<2x6x64xf8E4M3FN>, tensor<2x6x2xf8E8M0FNU>
}

func.func @ceil(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.ceil"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @clamp(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.clamp"(%a0) <{min_val = -1.0 : f32, max_val = 1.0 : f32}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @clz(%a0: tensor<4x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.clz"(%a0) : (tensor<4x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @concat(%a0: tensor<4x8xf32>, %a1: tensor<4x6xf32>) -> tensor<4x14xf32> {
  %0 = "tosa.concat"(%a0, %a1) <{axis = 1 : i32}> : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<4x14xf32>
  return %0 : tensor<4x14xf32>
}

func.func @conv2d(%a0: tensor<2x10x6x4xf32>, %a1: tensor<6x3x3x4xf32>, %a2: tensor<6xf32>, %a3: tensor<1xf32>, %a4: tensor<1xf32>) -> tensor<2x8x4x6xf32> {
  %0 = "tosa.conv2d"(%a0, %a1, %a2, %a3, %a4) <{pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32}> : (tensor<2x10x6x4xf32>, tensor<6x3x3x4xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x4x6xf32>
  return %0 : tensor<2x8x4x6xf32>
}

func.func @conv2d_block_scaled(%a0: tensor<2x10x6x64xf8E4M3FN>, %a1: tensor<2x10x6x2xf8E8M0FNU>, %a2: tensor<6x3x3x64xf8E4M3FN>, %a3: tensor<6x3x3x2xf8E8M0FNU>, %a4: tensor<6xf32>) -> tensor<2x8x4x6xf32> {
  %a5 = tosa.const_shape {values = dense<[0, 0, 0, 0]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %a6 = tosa.const_shape {values = dense<[1, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %a7 = tosa.const_shape {values = dense<[1, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = "tosa.conv2d_block_scaled"(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7) <{block_size = #tosa.block_size<BLOCK_SIZE_32>}> : (tensor<2x10x6x64xf8E4M3FN>, tensor<2x10x6x2xf8E8M0FNU>, tensor<6x3x3x64xf8E4M3FN>, tensor<6x3x3x2xf8E8M0FNU>, tensor<6xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x8x4x6xf32>
  return %0 : tensor<2x8x4x6xf32>
}

func.func @conv3d(%a0: tensor<2x6x6x6x4xf32>, %a1: tensor<6x3x3x3x4xf32>, %a2: tensor<6xf32>, %a3: tensor<1xf32>, %a4: tensor<1xf32>) -> tensor<2x4x4x4x6xf32> {
  %0 = "tosa.conv3d"(%a0, %a1, %a2, %a3, %a4) <{pad = array<i64: 0, 0, 0, 0, 0, 0>, stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, acc_type = f32}> : (tensor<2x6x6x6x4xf32>, tensor<6x3x3x3x4xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x4x4x4x6xf32>
  return %0 : tensor<2x4x4x4x6xf32>
}

func.func @cos(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.cos"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @depthwise_conv2d(%a0: tensor<2x10x6x4xf32>, %a1: tensor<3x3x4x2xf32>, %a2: tensor<8xf32>, %a3: tensor<1xf32>, %a4: tensor<1xf32>) -> tensor<2x8x4x8xf32> {
  %0 = "tosa.depthwise_conv2d"(%a0, %a1, %a2, %a3, %a4) <{pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32}> : (tensor<2x10x6x4xf32>, tensor<3x3x4x2xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x4x8xf32>
  return %0 : tensor<2x8x4x8xf32>
}

func.func @equal(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xi1> {
  %0 = "tosa.equal"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xi1>
  return %0 : tensor<4x8xi1>
}

func.func @erf(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.erf"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @exp(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.exp"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @fft2d(%a0: tensor<2x4x8xf32>, %a1: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
  %0:2 = "tosa.fft2d"(%a0, %a1) <{inverse = false}> : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  return %0#0, %0#1 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
}

func.func @floor(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.floor"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @gather(%a0: tensor<2x4x8xf32>, %a1: tensor<2x6xi32>) -> tensor<2x6x8xf32> {
  %0 = "tosa.gather"(%a0, %a1) : (tensor<2x4x8xf32>, tensor<2x6xi32>) -> tensor<2x6x8xf32>
  return %0 : tensor<2x6x8xf32>
}

func.func @greater(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xi1> {
  %0 = "tosa.greater"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xi1>
  return %0 : tensor<4x8xi1>
}

func.func @greater_equal(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xi1> {
  %0 = "tosa.greater_equal"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xi1>
  return %0 : tensor<4x8xi1>
}

func.func @identity(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.identity"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @intdiv(%a0: tensor<4x8xi32>, %a1: tensor<1x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.intdiv"(%a0, %a1) : (tensor<4x8xi32>, tensor<1x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @log(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.log"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @logical_and(%a0: tensor<4x8xi1>, %a1: tensor<4x1xi1>) -> tensor<4x8xi1> {
  %0 = "tosa.logical_and"(%a0, %a1) : (tensor<4x8xi1>, tensor<4x1xi1>) -> tensor<4x8xi1>
  return %0 : tensor<4x8xi1>
}

func.func @logical_left_shift(%a0: tensor<4x8xi32>, %a1: tensor<1x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.logical_left_shift"(%a0, %a1) : (tensor<4x8xi32>, tensor<1x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @logical_not(%a0: tensor<4x8xi1>) -> tensor<4x8xi1> {
  %0 = "tosa.logical_not"(%a0) : (tensor<4x8xi1>) -> tensor<4x8xi1>
  return %0 : tensor<4x8xi1>
}

func.func @logical_or(%a0: tensor<4x8xi1>, %a1: tensor<4x1xi1>) -> tensor<4x8xi1> {
  %0 = "tosa.logical_or"(%a0, %a1) : (tensor<4x8xi1>, tensor<4x1xi1>) -> tensor<4x8xi1>
  return %0 : tensor<4x8xi1>
}

func.func @logical_right_shift(%a0: tensor<4x8xi32>, %a1: tensor<1x8xi32>) -> tensor<4x8xi32> {
  %0 = "tosa.logical_right_shift"(%a0, %a1) : (tensor<4x8xi32>, tensor<1x8xi32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

func.func @logical_xor(%a0: tensor<4x8xi1>, %a1: tensor<4x1xi1>) -> tensor<4x8xi1> {
  %0 = "tosa.logical_xor"(%a0, %a1) : (tensor<4x8xi1>, tensor<4x1xi1>) -> tensor<4x8xi1>
  return %0 : tensor<4x8xi1>
}

func.func @matmul(%a0: tensor<2x4x8xf32>, %a1: tensor<2x8x6xf32>, %a2: tensor<1xf32>, %a3: tensor<1xf32>) -> tensor<2x4x6xf32> {
  %0 = "tosa.matmul"(%a0, %a1, %a2, %a3) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

func.func @matmul_t(%a0: tensor<2x4x8xf32>, %a1: tensor<2x6x8xf32>, %a2: tensor<1xf32>, %a3: tensor<1xf32>) -> tensor<2x4x6xf32> {
  %0 = "tosa.matmul_t"(%a0, %a1, %a2, %a3) : (tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

func.func @matmul_t_block_scaled(%a0: tensor<2x4x64xf8E4M3FN>, %a1: tensor<2x4x2xf8E8M0FNU>, %a2: tensor<2x6x64xf8E4M3FN>, %a3: tensor<2x6x2xf8E8M0FNU>) -> tensor<2x4x6xf32> {
  %0 = "tosa.matmul_t_block_scaled"(%a0, %a1, %a2, %a3) <{block_size = #tosa.block_size<BLOCK_SIZE_32>}> : (tensor<2x4x64xf8E4M3FN>, tensor<2x4x2xf8E8M0FNU>, tensor<2x6x64xf8E4M3FN>, tensor<2x6x2xf8E8M0FNU>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

func.func @max_pool2d(%a0: tensor<2x10x6x4xf32>) -> tensor<2x8x4x4xf32> {
  %0 = "tosa.max_pool2d"(%a0) <{kernel = array<i64: 3, 3>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}> : (tensor<2x10x6x4xf32>) -> tensor<2x8x4x4xf32>
  return %0 : tensor<2x8x4x4xf32>
}

func.func @max_pool2d_adaptive(%a0: tensor<2x10x6x4xf32>) -> tensor<2x8x4x4xf32> {
  %a1 = tosa.const_shape {values = dense<[3, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %a2 = tosa.const_shape {values = dense<[1, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %a3 = tosa.const_shape {values = dense<[0, 0, 0, 0]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %0 = "tosa.max_pool2d_adaptive"(%a0, %a1, %a2, %a3) : (tensor<2x10x6x4xf32>, !tosa.shape<2>, !tosa.shape<2>, !tosa.shape<4>) -> tensor<2x8x4x4xf32>
  return %0 : tensor<2x8x4x4xf32>
}

func.func @maximum(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.maximum"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @minimum(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.minimum"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @mul(%a0: tensor<4x8xf32>, %a1: tensor<4x1xf32>, %a2: tensor<1xi8>) -> tensor<4x8xf32> {
  %0 = "tosa.mul"(%a0, %a1, %a2) : (tensor<4x8xf32>, tensor<4x1xf32>, tensor<1xi8>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @negate(%a0: tensor<4x8xf32>, %a1: tensor<1xf32>, %a2: tensor<1xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.negate"(%a0, %a1, %a2) : (tensor<4x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @pad(%a0: tensor<4x8xf32>, %a2: tensor<1xf32>) -> tensor<4x12xf32> {
  %a1 = tosa.const_shape {values = dense<[0, 0, 2, 2]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %0 = "tosa.pad"(%a0, %a1, %a2) : (tensor<4x8xf32>, !tosa.shape<4>, tensor<1xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}

func.func @pow(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.pow"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @reciprocal(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.reciprocal"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @reduce_all(%a0: tensor<4x8xi1>) -> tensor<4x1xi1> {
  %0 = "tosa.reduce_all"(%a0) <{axis = 1 : i32}> : (tensor<4x8xi1>) -> tensor<4x1xi1>
  return %0 : tensor<4x1xi1>
}

func.func @reduce_any(%a0: tensor<4x8xi1>) -> tensor<4x1xi1> {
  %0 = "tosa.reduce_any"(%a0) <{axis = 1 : i32}> : (tensor<4x8xi1>) -> tensor<4x1xi1>
  return %0 : tensor<4x1xi1>
}

func.func @reduce_max(%a0: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "tosa.reduce_max"(%a0) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

func.func @reduce_min(%a0: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "tosa.reduce_min"(%a0) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

func.func @reduce_product(%a0: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "tosa.reduce_product"(%a0) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

func.func @reduce_sum(%a0: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "tosa.reduce_sum"(%a0) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

func.func @rescale(%a0: tensor<4x8xi32>, %a1: tensor<8xi32>, %a2: tensor<8xi8>, %a3: tensor<1xi32>, %a4: tensor<1xi8>) -> tensor<4x8xi8> {
  %0 = "tosa.rescale"(%a0, %a1, %a2, %a3, %a4) <{scale32 = true, rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>, per_channel = true, input_unsigned = false, output_unsigned = false}> : (tensor<4x8xi32>, tensor<8xi32>, tensor<8xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<4x8xi8>
  return %0 : tensor<4x8xi8>
}

func.func @reshape(%a0: tensor<4x8xf32>) -> tensor<4x2x4xf32> {
  %a1 = tosa.const_shape {values = dense<[4, 2, 4]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %0 = "tosa.reshape"(%a0, %a1) : (tensor<4x8xf32>, !tosa.shape<3>) -> tensor<4x2x4xf32>
  return %0 : tensor<4x2x4xf32>
}

func.func @reshape_block_scaled(%a0: tensor<2x6x64xf8E4M3FN>, %a1: tensor<2x6x2xf8E8M0FNU>) -> (tensor<2x3x2x64xf8E4M3FN>, tensor<2x3x2x2xf8E8M0FNU>) {
  %a2 = tosa.const_shape {values = dense<[2, 3, 2, 64]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %0:2 = "tosa.reshape_block_scaled"(%a0, %a1, %a2) <{block_size = #tosa.block_size<BLOCK_SIZE_32>}> : (tensor<2x6x64xf8E4M3FN>, tensor<2x6x2xf8E8M0FNU>, !tosa.shape<4>) -> (tensor<2x3x2x64xf8E4M3FN>, tensor<2x3x2x2xf8E8M0FNU>)
  return %0#0, %0#1 : tensor<2x3x2x64xf8E4M3FN>, tensor<2x3x2x2xf8E8M0FNU>
}

func.func @resize(%a0: tensor<2x8x4x6xf32>) -> tensor<2x16x8x6xf32> {
  %a1 = tosa.const_shape {values = dense<[4, 2, 4, 2]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %a2 = tosa.const_shape {values = dense<[0, 0]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %a3 = tosa.const_shape {values = dense<[2, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = "tosa.resize"(%a0, %a1, %a2, %a3) <{mode = #tosa.resize_mode<BILINEAR>}> : (tensor<2x8x4x6xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x16x8x6xf32>
  return %0 : tensor<2x16x8x6xf32>
}

func.func @reverse(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.reverse"(%a0) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @rfft2d(%a0: tensor<2x4x8xf32>) -> (tensor<2x4x5xf32>, tensor<2x4x5xf32>) {
  %0:2 = "tosa.rfft2d"(%a0) : (tensor<2x4x8xf32>) -> (tensor<2x4x5xf32>, tensor<2x4x5xf32>)
  return %0#0, %0#1 : tensor<2x4x5xf32>, tensor<2x4x5xf32>
}

func.func @row_gather(%a0: tensor<2x4x8xf32>, %a1: tensor<2x6xi32>, %a2: tensor<1xi32>) -> tensor<2x12x8xf32> {
  %0 = "tosa.row_gather"(%a0, %a1, %a2) : (tensor<2x4x8xf32>, tensor<2x6xi32>, tensor<1xi32>) -> tensor<2x12x8xf32>
  return %0 : tensor<2x12x8xf32>
}

func.func @row_gather_block_scaled(%a0: tensor<2x4x64xf8E4M3FN>, %a1: tensor<2x4x2xf8E8M0FNU>, %a2: tensor<2x6xi32>, %a3: tensor<1xi32>) -> (tensor<2x12x64xf8E4M3FN>, tensor<2x12x2xf8E8M0FNU>) {
  %0:2 = "tosa.row_gather_block_scaled"(%a0, %a1, %a2, %a3) <{block_size = #tosa.block_size<BLOCK_SIZE_32>}> : (tensor<2x4x64xf8E4M3FN>, tensor<2x4x2xf8E8M0FNU>, tensor<2x6xi32>, tensor<1xi32>) -> (tensor<2x12x64xf8E4M3FN>, tensor<2x12x2xf8E8M0FNU>)
  return %0#0, %0#1 : tensor<2x12x64xf8E4M3FN>, tensor<2x12x2xf8E8M0FNU>
}

func.func @rsqrt(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.rsqrt"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @scatter(%a0: tensor<2x8x4xf32>, %a1: tensor<2x6xi32>, %a2: tensor<2x6x4xf32>) -> tensor<2x8x4xf32> {
  %0 = "tosa.scatter"(%a0, %a1, %a2) : (tensor<2x8x4xf32>, tensor<2x6xi32>, tensor<2x6x4xf32>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}

func.func @select(%a0: tensor<4x8xi1>, %a1: tensor<4x8xf32>, %a2: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.select"(%a0, %a1, %a2) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @sigmoid(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.sigmoid"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @sin(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.sin"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @slice(%a0: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %a1 = tosa.const_shape {values = dense<[0, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %a2 = tosa.const_shape {values = dense<[4, 6]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = "tosa.slice"(%a0, %a1, %a2) : (tensor<4x8xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

func.func @sub(%a0: tensor<4x8xf32>, %a1: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.sub"(%a0, %a1) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @table(%a0: tensor<4x8xi8>, %a1: tensor<256xi8>) -> tensor<4x8xi8> {
  %0 = "tosa.table"(%a0, %a1) : (tensor<4x8xi8>, tensor<256xi8>) -> tensor<4x8xi8>
  return %0 : tensor<4x8xi8>
}

func.func @tanh(%a0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tosa.tanh"(%a0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @tile(%a0: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %a1 = tosa.const_shape {values = dense<[1, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = "tosa.tile"(%a0, %a1) : (tensor<4x8xf32>, !tosa.shape<2>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

func.func @transpose(%a0: tensor<4x8x6xf32>) -> tensor<6x4x8xf32> {
  %0 = "tosa.transpose"(%a0) <{perms = array<i32: 2, 0, 1>}> : (tensor<4x8x6xf32>) -> tensor<6x4x8xf32>
  return %0 : tensor<6x4x8xf32>
}

func.func @transpose_conv2d(%a0: tensor<2x8x4x4xf32>, %a1: tensor<6x3x3x4xf32>, %a2: tensor<6xf32>, %a3: tensor<1xf32>, %a4: tensor<1xf32>) -> tensor<2x10x6x6xf32> {
  %0 = "tosa.transpose_conv2d"(%a0, %a1, %a2, %a3, %a4) <{out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, acc_type = f32}> : (tensor<2x8x4x4xf32>, tensor<6x3x3x4xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x10x6x6xf32>
  return %0 : tensor<2x10x6x6xf32>
}
