// RUN: shard-run %s -n 12 | FileCheck %s
// RUN: shard-run %s -n 12 --engine=pjrt | FileCheck %s

// Sub-axes that no single grid can have, beside a mesh over other devices: one of the two has its own grid.
sdy.mesh @mesh = <["x"=2, "y"=3]>
sdy.mesh @line = <["z"=12]>

// CHECK: 0 {{.*}} OK
// CHECK: 1 {{.*}} OK
// CHECK: 2 {{.*}} OK
func.func @main(%a: tensor<24x36xf32> {sdy.sharding = #sdy.sharding<@line, [{"z":(1)4}, {}]>},
    %b: tensor<24x36xf32> {sdy.sharding = #sdy.sharding<@line, [{"z":(1)6}, {}]>})
    -> (tensor<24x36xf32>, tensor<24x36xf32>, tensor<24x36xf32>) {
  %0 = sdy.reshard %a <@line, [{"z":(1)6}, {}]> : tensor<24x36xf32>
  %1 = sdy.reshard %a <@line, [{}, {}]> : tensor<24x36xf32>
  %2 = sdy.reshard %b <@line, [{"z":(1)4}, {}]> : tensor<24x36xf32>
  return %0, %1, %2 : tensor<24x36xf32>, tensor<24x36xf32>, tensor<24x36xf32>
}

func.func @alone(%a: tensor<30x30xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<30x30xf32> {
  %0 = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<30x30xf32>
  return %0 : tensor<30x30xf32>
}
