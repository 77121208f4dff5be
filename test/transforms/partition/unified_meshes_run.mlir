// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-run %s | FileCheck %s

// Tensors of one operation on meshes with other axes and other orders of devices.
// CHECK: result
// CHECK: <@m, [{}, {"a", "b"}]> {{.*}} OK
// CHECK: <@reversed, [{"a"}, {}]> {{.*}} OK
// CHECK: <@m, [{}, {"a"}]> {{.*}} OK
// CHECK: <@columns_0, [{"a"}, {"b"}]> {{.*}} OK
sdy.mesh @m = <["a"=2, "b"=3]>
sdy.mesh @line = <["x"=6]>
sdy.mesh @reversed = <["a"=2, "b"=3], device_ids=[5, 4, 3, 2, 1, 0]>
sdy.mesh @line_of_columns = <["x"=6], device_ids=[0, 3, 1, 4, 2, 5]>
// No split of the devices has the axes of both this mesh and @m.
sdy.mesh @columns = <["c"=3, "d"=2]>
sdy.mesh @not_used = <["c"=3, "d"=2], device_ids=[5, 4, 3, 2, 1, 0]>
func.func @main(%a: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {?}]>},
                %b: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@reversed, [{?}, {"b", ?}]>},
                %c: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@line, [{"x", ?}, {?}]>},
                %d: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@columns, [{"c"}, {"d"}]>})
    -> (tensor<12x6xf32>, tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"a"}, {}]>},
        tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"a"}]>},
        tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@columns, [{"d"}, {"c"}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@line, [{}, {"x"}]>]>} : tensor<12x6xf32>
  %1 = stablehlo.add %0, %c : tensor<12x6xf32>
  %2 = stablehlo.multiply %1, %b {sdy.sharding = #sdy.sharding_per_value<[<@line_of_columns, [{"x"}, {}]>]>} : tensor<12x6xf32>
  %3 = stablehlo.add %0, %d : tensor<12x6xf32>
  return %1, %2, %0, %3 : tensor<12x6xf32>, tensor<12x6xf32>, tensor<12x6xf32>, tensor<12x6xf32>
}
