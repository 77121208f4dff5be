// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s --check-prefix=LOCAL

// The elements of a padded shard that are not padding come from neighbours, without a gather.
// CHECK: result
// CHECK-COUNT-7: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>
// LOCAL-NOT: gather
// LOCAL: func.func @main
func.func @main(
    %a: tensor<16x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
    %b: tensor<13x7xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
    %bound: tensor<f32>)
    -> (tensor<18x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
        tensor<18x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
        tensor<18x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
        tensor<16x10xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<19x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) {
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9 : i32
  %given = tensor.extract %bound[] : tensor<f32>
  // LOCAL: shard.update_halo
  // LOCAL: tensor.pad {{.*}} low[0, 1] high[0, 1]
  // LOCAL: linalg.generic
  %0 = tensor.pad %a low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<16x5xf32> to tensor<18x7xf32>
  // The same with another padding value, at other positions.
  %1 = tensor.pad %a low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %given : f32
  } : tensor<16x5xf32> to tensor<18x7xf32>
  %2 = tensor.pad %a low[2, 0] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %given : f32
  } : tensor<16x5xf32> to tensor<18x7xf32>
  // Two dimensions with partly filled shards.
  %3 = tensor.pad %b low[0, 2] high[3, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %nine : i32
  } : tensor<13x7xi32> to tensor<16x10xi32>
  %before = tosa.const_shape {values = dense<[3, 0, 1, 0]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %behind = tosa.const_shape {values = dense<[1, 2, 0, 1]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %five = "tosa.const"() {values = dense<5> : tensor<1xi32>} : () -> tensor<1xi32>
  %4 = tosa.pad %b, %before, %five : (tensor<13x7xi32>, !tosa.shape<4>, tensor<1xi32>) -> tensor<16x8xi32>
  %5 = tosa.pad %b, %behind, %five : (tensor<13x7xi32>, !tosa.shape<4>, tensor<1xi32>) -> tensor<16x8xi32>
  %6 = tensor.pad %a low[0, 0] high[3, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<16x5xf32> to tensor<19x5xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<18x7xf32>, tensor<18x7xf32>, tensor<18x7xf32>, tensor<16x10xi32>, tensor<16x8xi32>, tensor<16x8xi32>, tensor<19x5xf32>
}
