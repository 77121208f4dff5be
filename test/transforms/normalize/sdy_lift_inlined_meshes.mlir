// RUN: shard-opt %s --split-input-file --sdy-lift-inlined-meshes | FileCheck %s

// Of two definitions of a mesh the first stays; new meshes follow the last one, with an attribute in StableHLO's form.
// CHECK: sdy.mesh @grid = <["r"=2, "c"=4]> {stablehlo.mesh = {axes = [{name = "r", size = 2 : i64}, {name = "c", size = 4 : i64}]}}
// CHECK-NEXT: sdy.mesh @mesh = <["k"=3]>
// CHECK-NEXT: sdy.mesh @mesh_0 = <["k"=3], device_ids=[2, 0, 1]>
// CHECK-SAME: device_ids = dense<[2, 0, 1]> : tensor<3xi64>
// CHECK-NEXT: sdy.mesh @mesh_1 = <["q"=5]>
// CHECK-NEXT: sdy.mesh @maximal_mesh_6 = <[], device_ids=[6]>
// CHECK-NEXT: sdy.mesh @empty_mesh = <[]>
// CHECK-NOT: sdy.mesh
sdy.mesh @grid = <["r"=2, "c"=4]>
sdy.mesh @mesh = <["k"=3]>
sdy.mesh @same_grid = <["r"=2, "c"=4]>

// CHECK-LABEL: func.func @lifted
// CHECK-SAME: sdy.sharding = #sdy.sharding<@grid, [{"r"}]>
// CHECK-SAME: sdy.sharding = #sdy.sharding<@mesh_0, [{"k"}]>
// CHECK-SAME: -> (tensor<30xf32> {sdy.sharding = #sdy.sharding<@mesh_1, [{"q"}]>})
// CHECK: arith.addf {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"k"}]>]>}
// CHECK: sdy.sharding_constraint {{.*}} <@maximal_mesh_6, []>
// CHECK: sdy.reshard {{.*}} <@empty_mesh, [{}]>
func.func @lifted(%a: tensor<30xf32> {sdy.sharding = #sdy.sharding<@same_grid, [{"r"}]>},
                  %b: tensor<30xf32> {sdy.sharding = #sdy.sharding<mesh<["k"=3], device_ids=[2, 0, 1]>, [{"k"}]>})
    -> (tensor<30xf32> {sdy.sharding = #sdy.sharding<mesh<["q"=5]>, [{"q"}]>}) {
  %0 = arith.addf %a, %b {sdy.sharding = #sdy.sharding_per_value<[<mesh<["k"=3]>, [{"k"}]>]>} : tensor<30xf32>
  %1 = sdy.sharding_constraint %0 <mesh<[], device_ids=[6]>, []> : tensor<30xf32>
  %2 = sdy.reshard %1 <mesh<[]>, [{}]> : tensor<30xf32>
  return %2 : tensor<30xf32>
}

// -----

// Replica groups by axes are lifted, too; devices keep their order.
// CHECK: sdy.mesh @g = <["x"=2]>
// CHECK: sdy.mesh @mesh = <["x"=2], device_ids=[1, 0]>
sdy.mesh @g = <["x"=2]>

// CHECK-LABEL: func.func @replica_groups
// CHECK: replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @g, axes = [#stablehlo.axis_ref<name = "x">]>
// CHECK: replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>
// CHECK: replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>
func.func @replica_groups(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>, axes = [#stablehlo.axis_ref<name = "x">]>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_to_all"(%0) <{concat_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>, axes = [#stablehlo.axis_ref<name = "x">]>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.all_to_all"(%1) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
