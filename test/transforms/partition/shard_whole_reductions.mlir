// RUN: shard-opt %s --shard-whole-reductions | FileCheck %s
// RUN: shard-opt %s --pass-pipeline='builtin.module(shard-whole-reductions,func.func(sdy-pad-for-divisibility),sdy-convert-global-to-local)' | FileCheck %s --check-prefix=LOCAL

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Windows overlap: each needs the whole kernel. What is summed up later one device has alone, which moves are told of.
// CHECK-LABEL: func @summed_up_later(
// CHECK:         %[[KERNEL:.*]] = sdy.all_gather [{"a"}, {}, {}] %{{.*}} out_sharding=<@mesh, [{}, {}, {}]> : tensor<7x1x4xf32>
// CHECK-NEXT:    %[[ALL:.*]] = stablehlo.convolution(%arg0, %[[KERNEL]])
// CHECK-NEXT:    %[[ONCE:.*]] = sdy.replicated_to_unreduced {"a"} %[[ALL]] out_sharding=<@mesh, [{}, {}, {}], unreduced={"a"}>
// CHECK-NEXT:    %[[CUT:.*]] = sdy.all_slice [{}, {}, {"b"}] %[[ONCE]] out_sharding=<@mesh, [{}, {}, {"b"}], unreduced={"a"}>
// CHECK-NEXT:    sdy.all_reduce {"a"} %[[CUT]] out_sharding=<@mesh, [{}, {}, {"b"}]>
// LOCAL-LABEL: func @summed_up_later(
// LOCAL:         %[[CONV:.*]] = stablehlo.convolution({{.*}}) -> tensor<1x3x4xf32>
// LOCAL:         stablehlo.select %{{.*}}, %[[CONV]], %{{.*}} : tensor<1x3x4xi1>, tensor<1x3x4xf32>
// LOCAL:         "stablehlo.all_reduce"
func.func @summed_up_later(%x: tensor<1x9x1xf32>, %k: tensor<7x1x4xf32>)
    -> (tensor<1x3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"b"}]>}) {
  %0 = sdy.all_slice [{"a"}, {}, {}] %k out_sharding=<@mesh, [{"a"}, {}, {}]> : tensor<7x1x4xf32>
  %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>} : (tensor<1x9x1xf32>, tensor<7x1x4xf32>) -> tensor<1x3x4xf32>
  %2 = sdy.all_slice [{}, {}, {"b"}] %1 out_sharding=<@mesh, [{}, {}, {"b"}]> : tensor<1x3x4xf32>
  %3 = sdy.all_reduce {"a"} %2 out_sharding=<@mesh, [{}, {}, {"b"}]> : tensor<1x3x4xf32>
  return %3 : tensor<1x3x4xf32>
}

// CHECK-LABEL: func @along_two_axes(
// CHECK:         sdy.all_gather [{"b", "a"}, {}, {}]
// CHECK:         sdy.replicated_to_unreduced {"a", "b"} %{{.*}} out_sharding=<@mesh, [{}, {}, {}], unreduced={"a", "b"}>
// CHECK-NEXT:    sdy.all_reduce {"a"} %{{.*}} out_sharding=<@mesh, [{}, {}, {}], unreduced={"b"}>
// CHECK-NEXT:    sdy.all_reduce {"b"} %{{.*}} out_sharding=<@mesh, [{}, {}, {}]>
func.func @along_two_axes(%x: tensor<1x9x1xf32>, %k: tensor<7x1x4xf32>) -> tensor<1x3x4xf32> {
  %0 = sdy.all_slice [{"b", "a"}, {}, {}] %k out_sharding=<@mesh, [{"b", "a"}, {}, {}]> : tensor<7x1x4xf32>
  %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x9x1xf32>, tensor<7x1x4xf32>) -> tensor<1x3x4xf32>
  %2 = sdy.all_reduce {"a"} %1 out_sharding=<@mesh, [{}, {}, {}]> : tensor<1x3x4xf32>
  %3 = sdy.all_reduce {"b"} %2 out_sharding=<@mesh, [{}, {}, {}]> : tensor<1x3x4xf32>
  return %3 : tensor<1x3x4xf32>
}

// CHECK-LABEL: func @not_summed_up(
// CHECK:         %[[KERNEL:.*]] = sdy.all_gather [{"a"}, {}, {}]
// CHECK-NEXT:    %[[ALL:.*]] = stablehlo.convolution(%arg0, %[[KERNEL]])
// CHECK-NEXT:    return %[[ALL]]
func.func @not_summed_up(%x: tensor<1x9x1xf32>, %k: tensor<7x1x4xf32>) -> tensor<1x3x4xf32> {
  %0 = sdy.all_slice [{"a"}, {}, {}] %k out_sharding=<@mesh, [{"a"}, {}, {}]> : tensor<7x1x4xf32>
  %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x9x1xf32>, tensor<7x1x4xf32>) -> tensor<1x3x4xf32>
  return %1 : tensor<1x3x4xf32>
}

// One window as large as the image: blocks of both go together, padded where they are uneven.
// CHECK-LABEL: func @one_window(
// CHECK-NOT:     sdy.all_gather
// LOCAL-LABEL: func @one_window(
// LOCAL:         stablehlo.convolution({{.*}} : (tensor<1x5x1xf32>, tensor<5x1x4xf32>) -> tensor<1x1x4xf32>
func.func @one_window(%x: tensor<1x9x1xf32>, %k: tensor<9x1x4xf32>) -> tensor<1x1x4xf32> {
  %0 = sdy.all_slice [{}, {"a"}, {}] %x out_sharding=<@mesh, [{}, {"a"}, {}]> : tensor<1x9x1xf32>
  %1 = sdy.all_slice [{"a"}, {}, {}] %k out_sharding=<@mesh, [{"a"}, {}, {}]> : tensor<9x1x4xf32>
  %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x9x1xf32>, tensor<9x1x4xf32>) -> tensor<1x1x4xf32>
  %3 = sdy.all_reduce {"a"} %2 out_sharding=<@mesh, [{}, {}, {}]> : tensor<1x1x4xf32>
  return %3 : tensor<1x1x4xf32>
}
