// matrix product, batch and columns sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>},
                %b: tensor<4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"y"}]>}) -> tensor<4x8x32xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %a, %b, %z, %z : (tensor<4x8x16xf32>, tensor<4x16x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4x8x32xf32>
  return %0 : tensor<4x8x32xf32>
}

// -----

// perceptron with bias and relu
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%x: tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>},
                %w1: tensor<1x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"y"}]>}, %b1: tensor<1x1x32xf32>,
                %w2: tensor<1x32x8xf32>) -> tensor<1x8x8xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %x, %w1, %z, %z : (tensor<1x8x16xf32>, tensor<1x16x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x32xf32>
  %1 = tosa.add %0, %b1 : (tensor<1x8x32xf32>, tensor<1x1x32xf32>) -> tensor<1x8x32xf32>
  %2 = tosa.clamp %1 {min_val = 0.0 : f32, max_val = 3.0e38 : f32} : (tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
  %3 = tosa.matmul %2, %w2, %z, %z : (tensor<1x8x32xf32>, tensor<1x32x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x8xf32>
  return %3 : tensor<1x8x8xf32>
}

// -----

// attention without its reductions, heads sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%q: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}, {}]>},
                %k: tensor<8x4x16xf32>, %v: tensor<8x16x4xf32>, %n: tensor<8x16x1xf32>) -> tensor<8x16x4xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %s = tosa.matmul %q, %k, %z, %z : (tensor<8x16x4xf32>, tensor<8x4x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x16x16xf32>
  %x = tosa.exp %s : (tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %p = tosa.add %x, %n : (tensor<8x16x16xf32>, tensor<8x16x1xf32>) -> tensor<8x16x16xf32>
  %o = tosa.matmul %p, %v, %z, %z : (tensor<8x16x16xf32>, tensor<8x16x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x16x4xf32>
  return %o : tensor<8x16x4xf32>
}

// -----

// attention with its reductions
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%q: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>},
                %k: tensor<8x4x16xf32>, %v: tensor<8x16x4xf32>) -> tensor<8x16x4xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %i = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %s = tosa.matmul %q, %k, %z, %z : (tensor<8x16x4xf32>, tensor<8x4x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x16x16xf32>
  %m = tosa.reduce_max %s {axis = 2 : i32} : (tensor<8x16x16xf32>) -> tensor<8x16x1xf32>
  %c = tosa.sub %s, %m : (tensor<8x16x16xf32>, tensor<8x16x1xf32>) -> tensor<8x16x16xf32>
  %x = tosa.exp %c : (tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %t = tosa.reduce_sum %x {axis = 2 : i32} : (tensor<8x16x16xf32>) -> tensor<8x16x1xf32>
  %r = tosa.reciprocal %t : (tensor<8x16x1xf32>) -> tensor<8x16x1xf32>
  %p = tosa.mul %x, %r, %i : (tensor<8x16x16xf32>, tensor<8x16x1xf32>, tensor<1xi8>) -> tensor<8x16x16xf32>
  %o = tosa.matmul %p, %v, %z, %z : (tensor<8x16x16xf32>, tensor<8x16x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x16x4xf32>
  return %o : tensor<8x16x4xf32>
}

// -----

// elementwise chain, result annotated
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>)
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = tosa.add %a, %b : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = tosa.tanh %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = tosa.maximum %1, %a : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = tosa.sigmoid %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// comparison and choice
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = tosa.greater %a, %b : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xi1>
  %1 = tosa.select %0, %a, %b : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = tosa.cast %1 : (tensor<8x16xf32>) -> tensor<8x16xi32>
  %3 = tosa.cast %2 : (tensor<8x16xi32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// operands that broadcast
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %row: tensor<1x16xf32>,
                %column: tensor<8x1xf32>) -> tensor<8x16xf32> {
  %0 = tosa.add %a, %row : (tensor<8x16xf32>, tensor<1x16xf32>) -> tensor<8x16xf32>
  %1 = tosa.sub %0, %column : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
  %2 = tosa.pow %1, %column : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// negation, with its zero points
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x16xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.negate %a, %z, %z : (tensor<8x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x16xf32>
  %1 = tosa.abs %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// two branches, sharded differently
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x16xf32> {
  %0 = tosa.exp %a : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = tosa.tanh %b : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = tosa.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// convolution
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%i: tensor<4x10x10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}, {}]>}, %f: tensor<16x3x3x8xf32>,
                %b: tensor<16xf32>, %z: tensor<1xf32>) -> tensor<4x8x8x16xf32> {
  %0 = tosa.conv2d %i, %f, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>,
      stride = array<i64: 1, 1>} : (tensor<4x10x10x8xf32>, tensor<16x3x3x8xf32>, tensor<16xf32>, tensor<1xf32>, tensor<1xf32>)
      -> tensor<4x8x8x16xf32>
  return %0 : tensor<4x8x8x16xf32>
}

// -----

// transposition and reshape
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x4x8xf32> {
  %0 = tosa.transpose %a {perms = array<i32: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %s = tosa.const_shape {values = dense<[4, 4, 8]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %1 = tosa.reshape %0, %s : (tensor<16x8xf32>, !tosa.shape<3>) -> tensor<4x4x8xf32>
  return %1 : tensor<4x4x8xf32>
}

// -----

// linalg and tosa in one program
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<16x32xf32>,
                %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = tosa.exp %a : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = linalg.matmul ins(%0, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  %2 = tosa.sigmoid %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %3 = linalg.add ins(%1, %2 : tensor<8x32xf32>, tensor<8x32xf32>) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %3 : tensor<8x32xf32>
}
