// RUN: shard-opt %s --sdy-inline-meshes | FileCheck %s

// CHECK-NOT: sdy.mesh
sdy.mesh @grid = <["r"=2, "c"=4]>
sdy.mesh @turned = <["k"=2], device_ids=[1, 0]>

// CHECK-LABEL: func.func @inlined
// CHECK-SAME: sdy.sharding = #sdy.sharding<mesh<["r"=2, "c"=4]>, [{"r"}, {?}]>
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["k"=2], device_ids=[1, 0]>, [{}, {"k"}]>})
// CHECK: math.exp {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=3]>, [{}, {}]>]>}
// CHECK: sdy.manual_computation
// CHECK-SAME: in_shardings=[<mesh<["r"=2, "c"=4]>, [{"c"}, {}]>] out_shardings=[<mesh<["r"=2, "c"=4]>, [{"c"}, {}]>]
func.func @inlined(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"r"}, {?}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@turned, [{}, {"k"}]>}) {
  %0 = math.exp %a {sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=3]>, [{}, {}]>]>} : tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@grid, [{"c"}, {}]>] out_shardings=[<@grid, [{"c"}, {}]>] manual_axes={"c"} (%b: tensor<2x8xf32>) {
    sdy.return %b : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @replica_groups
// CHECK: mesh = #stablehlo.mesh<axes=[<name = "k", size = 2>], device_ids=dense<[1, 0]> : tensor<2xi64>>, axes = [#stablehlo.axis_ref<name = "k">]
// CHECK: replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>
func.func @replica_groups(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @turned, axes = [#stablehlo.axis_ref<name = "k">]>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_to_all"(%0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
