// RUN: shard-opt %s --sdy-drop-sharding-and-mesh | FileCheck %s

// CHECK: module {
// CHECK-NEXT: func.func @main(%arg0: tensor<4xf32> {jax.note}, %arg1: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: stablehlo.add %arg0, %arg1 {note} : tensor<4xf32>
// CHECK-NEXT: return
sdy.mesh @mesh = <["x"=2]>

func.func @main(%a: tensor<4xf32> {jax.note, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.add %a, %b {note, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Groups of devices along axes of a mesh keep this mesh.
// CHECK-LABEL: func.func @groups
// CHECK: replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>]>, axes = [#stablehlo.axis_ref<name = "x">]>
func.func @groups(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
