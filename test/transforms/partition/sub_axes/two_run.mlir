// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s

// No split of 12 devices has both 4 and 6: the sub-axes are treated as axes of two meshes. An axis of all devices fits
// either mesh, and partial sums along the sub-axes are reduced there.
// CHECK: @main on 12
// CHECK: OK
// CHECK: OK
// CHECK: OK
sdy.mesh @mesh = <["z"=12]>
func.func @main(%a: tensor<24x36xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"z":(1)4}]>},
                %b: tensor<36x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)6}, {}]>},
                %c: tensor<36x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {}]>})
    -> (tensor<24x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)4}, {}]>},
        tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)6}]>},
        tensor<36x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)6}, {}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<24x36xf32>, tensor<36x8xf32>) -> tensor<24x8xf32>
  %1 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x36xf32>, tensor<f32>) -> tensor<24xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}], unreduced={"z":(1)4}> : tensor<24xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"z":(1)6}]> : tensor<24xf32>
  %4 = stablehlo.add %b, %c : tensor<36x8xf32>
  return %0, %3, %4 : tensor<24x8xf32>, tensor<24xf32>, tensor<36x8xf32>
}
