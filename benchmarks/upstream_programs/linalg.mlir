// matrix product, rows of the left factor sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%z : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// -----

// matrix product, contracted dimension sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%z : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// -----

// matrix product, only the result annotated
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
      ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%z : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// -----

// chain of three matrix products, batch and hidden layer sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
                %c: tensor<32x16xf32>, %d: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x32xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%z0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = linalg.matmul ins(%0, %c : tensor<8x32xf32>, tensor<32x16xf32>) outs(%z1 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%1, %d : tensor<8x16xf32>, tensor<16x8xf32>) outs(%z2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// perceptron with bias and relu, batch and hidden layer sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %w1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %b1: tensor<32xf32>,
                %w2: tensor<32x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%x, %w1 : tensor<8x16xf32>, tensor<16x32xf32>) outs(%z : tensor<8x32xf32>) -> tensor<8x32xf32>
  %b = linalg.broadcast ins(%b1 : tensor<32xf32>) outs(%e : tensor<8x32xf32>) dimensions = [0]
  %1 = linalg.add ins(%0, %b : tensor<8x32xf32>, tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %2 = linalg.max ins(%1, %z : tensor<8x32xf32>, tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = linalg.matmul ins(%2, %w2 : tensor<8x32xf32>, tensor<32x8xf32>) outs(%z2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// attention, batch and heads in one dimension, sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%q: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}, {}]>},
                %k: tensor<8x4x16xf32>, %v: tensor<8x16x4xf32>) -> tensor<8x16x4xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.0e38 : f32
  %e = tensor.empty() : tensor<8x16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<8x16x4xf32>, tensor<8x4x16xf32>) outs(%z : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %re = tensor.empty() : tensor<8x16xf32>
  %ri = linalg.fill ins(%lowest : f32) outs(%re : tensor<8x16xf32>) -> tensor<8x16xf32>
  %m = linalg.reduce { arith.maximumf } ins(%s : tensor<8x16x16xf32>) outs(%ri : tensor<8x16xf32>) dimensions = [2]
  %mb = linalg.broadcast ins(%m : tensor<8x16xf32>) outs(%e : tensor<8x16x16xf32>) dimensions = [2]
  %c = linalg.sub ins(%s, %mb : tensor<8x16x16xf32>, tensor<8x16x16xf32>) outs(%e : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %x = linalg.exp ins(%c : tensor<8x16x16xf32>) outs(%e : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%re : tensor<8x16xf32>) -> tensor<8x16xf32>
  %t = linalg.reduce { arith.addf } ins(%x : tensor<8x16x16xf32>) outs(%rz : tensor<8x16xf32>) dimensions = [2]
  %tb = linalg.broadcast ins(%t : tensor<8x16xf32>) outs(%e : tensor<8x16x16xf32>) dimensions = [2]
  %p = linalg.div ins(%x, %tb : tensor<8x16x16xf32>, tensor<8x16x16xf32>) outs(%e : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %oe = tensor.empty() : tensor<8x16x4xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<8x16x16xf32>, tensor<8x16x4xf32>) outs(%oz : tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  return %o : tensor<8x16x4xf32>
}

// -----

// attention, queries sharded along the sequence
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%q: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>},
                %k: tensor<8x4x16xf32>, %v: tensor<8x16x4xf32>) -> tensor<8x16x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<8x16x4xf32>, tensor<8x4x16xf32>) outs(%z : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %x = linalg.exp ins(%s : tensor<8x16x16xf32>) outs(%e : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %oe = tensor.empty() : tensor<8x16x4xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  %o = linalg.batch_matmul ins(%x, %v : tensor<8x16x16xf32>, tensor<8x16x4xf32>) outs(%oz : tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  return %o : tensor<8x16x4xf32>
}

// -----

// convolution, batch and output channels sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%i: tensor<4x10x10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}, {}]>},
                %f: tensor<3x3x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}, {"y"}]>}) -> tensor<4x8x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x8x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8x8x16xf32>) -> tensor<4x8x8x16xf32>
  %0 = linalg.conv_2d_nhwc_hwcf ins(%i, %f : tensor<4x10x10x8xf32>, tensor<3x3x8x16xf32>) outs(%z : tensor<4x8x8x16xf32>) -> tensor<4x8x8x16xf32>
  %1 = linalg.max ins(%0, %z : tensor<4x8x8x16xf32>, tensor<4x8x8x16xf32>) outs(%e : tensor<4x8x8x16xf32>) -> tensor<4x8x8x16xf32>
  return %1 : tensor<4x8x8x16xf32>
}

// -----

// convolution, input channels sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%i: tensor<4x10x10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}, {"x"}]>}, %f: tensor<3x3x8x16xf32>,
                %o: tensor<4x8x8x16xf32>) -> tensor<4x8x8x16xf32> {
  %0 = linalg.conv_2d_nhwc_hwcf ins(%i, %f : tensor<4x10x10x8xf32>, tensor<3x3x8x16xf32>) outs(%o : tensor<4x8x8x16xf32>) -> tensor<4x8x8x16xf32>
  return %0 : tensor<4x8x8x16xf32>
}

// -----

// depthwise convolution and pooling, channels sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%i: tensor<4x10x10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}, {"y"}]>}, %f: tensor<3x3x8xf32>,
                %w: tensor<2x2xf32>, %a: tensor<4x8x8x8xf32>, %b: tensor<4x7x7x8xf32>) -> tensor<4x7x7x8xf32> {
  %0 = linalg.depthwise_conv_2d_nhwc_hwc ins(%i, %f : tensor<4x10x10x8xf32>, tensor<3x3x8xf32>) outs(%a : tensor<4x8x8x8xf32>) -> tensor<4x8x8x8xf32>
  %1 = linalg.pooling_nhwc_sum ins(%0, %w : tensor<4x8x8x8xf32>, tensor<2x2xf32>) outs(%b : tensor<4x7x7x8xf32>) -> tensor<4x7x7x8xf32>
  return %1 : tensor<4x7x7x8xf32>
}

// -----

// elementwise chain, in the middle annotated
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.add ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = linalg.exp {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
      ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = linalg.mul ins(%1, %a : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = linalg.tanh ins(%2 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// reduction along and across the sharded dimension
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>}, %i: tensor<8x4xf32>,
                %j: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.reduce { arith.addf } ins(%a : tensor<8x16x4xf32>) outs(%i : tensor<8x4xf32>) dimensions = [1]
  %1 = linalg.reduce { arith.maximumf } ins(%0 : tensor<8x4xf32>) outs(%j : tensor<8xf32>) dimensions = [1]
  return %1 : tensor<8xf32>
}

// -----

// transposition and broadcast
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<16x4x8xf32> {
  %e = tensor.empty() : tensor<16x8xf32>
  %0 = linalg.transpose ins(%a : tensor<8x16xf32>) outs(%e : tensor<16x8xf32>) permutation = [1, 0]
  %b = tensor.empty() : tensor<16x4x8xf32>
  %1 = linalg.broadcast ins(%0 : tensor<16x8xf32>) outs(%b : tensor<16x4x8xf32>) dimensions = [1]
  return %1 : tensor<16x4x8xf32>
}

// -----

// layer normalization, batch sharded
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %g: tensor<16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.reduce { arith.addf } ins(%a : tensor<8x16xf32>) outs(%z : tensor<8xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<8xf32>) outs(%e : tensor<8x16xf32>) dimensions = [1]
  %c = linalg.sub ins(%a, %sb : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %q = linalg.square ins(%c : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %v = linalg.reduce { arith.addf } ins(%q : tensor<8x16xf32>) outs(%z : tensor<8xf32>) dimensions = [1]
  %d = linalg.rsqrt ins(%v : tensor<8xf32>) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %db = linalg.broadcast ins(%d : tensor<8xf32>) outs(%e : tensor<8x16xf32>) dimensions = [1]
  %n = linalg.mul ins(%c, %db : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %gb = linalg.broadcast ins(%g : tensor<16xf32>) outs(%e : tensor<8x16xf32>) dimensions = [0]
  %o = linalg.mul ins(%n, %gb : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// Gram matrix, both factors the same sharded tensor
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<16x8xf32>
  %t = linalg.transpose ins(%a : tensor<8x16xf32>) outs(%e : tensor<16x8xf32>) permutation = [1, 0]
  %0 = linalg.matmul ins(%a, %t : tensor<8x16xf32>, tensor<16x8xf32>) outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// outer product and product with a vector
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#both = affine_map<(i, j) -> (i, j)>
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %b: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %o: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#row, #column, #both], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8xf32>, tensor<16xf32>) outs(%e : tensor<8x16xf32>) {
    ^bb0(%l: f32, %r: f32, %out: f32):
      %p = arith.mulf %l, %r : f32
      linalg.yield %p : f32
    } -> tensor<8x16xf32>
  %1 = linalg.matvec ins(%0, %b : tensor<8x16xf32>, tensor<16xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// resharding between two layers
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.exp ins(%a : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x"}]> : tensor<8x16xf32>
  %2 = linalg.exp ins(%1 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// two results of one generic op
#both = affine_map<(i, j) -> (i, j)>
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %0:2 = linalg.generic {indexing_maps = [#both, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<8x16xf32>) outs(%e, %e : tensor<8x16xf32>, tensor<8x16xf32>) {
    ^bb0(%in: f32, %o1: f32, %o2: f32):
      %n = arith.negf %in : f32
      linalg.yield %n, %in : f32, f32
    } -> (tensor<8x16xf32>, tensor<8x16xf32>)
  return %0#0, %0#1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// softmax as one op
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %o: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = linalg.softmax dimension(1) ins(%a : tensor<8x16xf32>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// elementwise ops of arith and math
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  %0 = arith.addf %a, %a : tensor<8x16xf32>
  %1 = math.exp %0 : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// heads split off and merged by tensor ops
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x16xf32> {
  %0 = tensor.expand_shape %a [[0], [1, 2]] output_shape [8, 4, 4] : tensor<8x16xf32> into tensor<8x4x4xf32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<8x4x4xf32> into tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
