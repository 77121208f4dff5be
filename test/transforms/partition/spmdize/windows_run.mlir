// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s --check-prefix=LOCAL

// If windows cross shards, neighbours exchange only their borders.
// CHECK: result
// CHECK-COUNT-8: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>
// LOCAL-NOT: gather
// LOCAL: func.func @main
func.func @main(
    %a: tensor<1x16x9x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
    %b: tensor<2x9x13x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
    %k: tensor<3x2x3x5xf32>,
    %c: tensor<23x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
    %one: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>})
    -> (tensor<1x14x7x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<1x8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}, {}]>},
        tensor<2x7x12x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
        tensor<2x4x6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x"}, {}]>},
        tensor<20x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
        tensor<10x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
        tensor<14xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>},
        tensor<13xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<3x3xf32>
  %e0 = tensor.empty() : tensor<1x14x7x4xf32>
  %f0 = linalg.fill ins(%least : f32) outs(%e0 : tensor<1x14x7x4xf32>) -> tensor<1x14x7x4xf32>
  // LOCAL: shard.update_halo {{.*}} split_axes = {{\[\[\], \[0, 1\]\]}} halo_sizes = [0, 2]
  %0 = linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%a, %w : tensor<1x16x9x4xf32>, tensor<3x3xf32>) outs(%f0 : tensor<1x14x7x4xf32>) -> tensor<1x14x7x4xf32>
  // Windows whose stride equals their size need no exchange.
  %w2 = tensor.empty() : tensor<2x2xf32>
  %e1 = tensor.empty() : tensor<1x8x4x4xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  // LOCAL: linalg.pooling_nhwc_sum {{.*}} ins(%arg0,
  %1 = linalg.pooling_nhwc_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%a, %w2 : tensor<1x16x9x4xf32>, tensor<2x2xf32>) outs(%f1 : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %e2 = tensor.empty() : tensor<2x7x12x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x7x12x5xf32>) -> tensor<2x7x12x5xf32>
  // Two dimensions with partly filled shards.
  // LOCAL: shard.update_halo
  // LOCAL: shard.update_halo
  // LOCAL: linalg.conv_2d_nhwc_hwcf
  %2 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%b, %k : tensor<2x9x13x3xf32>, tensor<3x2x3x5xf32>) outs(%f2 : tensor<2x7x12x5xf32>) -> tensor<2x7x12x5xf32>
  %e3 = tensor.empty() : tensor<2x4x6x5xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  %3 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%b, %k : tensor<2x9x13x3xf32>, tensor<3x2x3x5xf32>) outs(%f3 : tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  // LOCAL: tensor.extract_slice
  %4 = tensor.extract_slice %c[2, 0] [20, 6] [1, 1] : tensor<23x6xi32> to tensor<20x6xi32>
  %5 = tensor.extract_slice %c[1, 0] [10, 6] [2, 1] : tensor<23x6xi32> to tensor<10x6xi32>
  %6 = tensor.extract_slice %one[1] [14] [1] : tensor<16xf32> to tensor<14xf32>
  %e7 = tensor.empty() : tensor<13xf32>
  // A sum of neighbouring elements that depends on their index.
  // LOCAL: linalg.index
  %n = tensor.empty() : tensor<4xf32>
  %f7 = linalg.fill ins(%zero : f32) outs(%e7 : tensor<13xf32>) -> tensor<13xf32>
  %7 = linalg.generic {
      indexing_maps = [affine_map<(i, w) -> (i + w)>, affine_map<(i, w) -> (w)>, affine_map<(i, w) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%one, %n : tensor<16xf32>, tensor<4xf32>) outs(%f7 : tensor<13xf32>) {
  ^bb0(%x: f32, %unused: f32, %sum: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %y = arith.mulf %x, %f : f32
    %s = arith.addf %sum, %y : f32
    linalg.yield %s : f32
  } -> tensor<13xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<1x14x7x4xf32>, tensor<1x8x4x4xf32>, tensor<2x7x12x5xf32>, tensor<2x4x6x5xf32>, tensor<20x6xi32>, tensor<10x6xi32>, tensor<14xf32>, tensor<13xf32>
}
