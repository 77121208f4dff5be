// RUN: shard-opt %s --split-input-file --verify-diagnostics --convert-sdy-to-shard | FileCheck %s

// A mesh becomes a grid with an attribute for the names of its axes, unless these are the default names of a grid.
// CHECK: shard.grid @mesh(shape = 2x4) {mlir_shard.axis_names = ["data", "model"]}
// CHECK: shard.grid @unused(shape = 3){{$}}
sdy.mesh @mesh = <["data"=2, "model"=4]>
sdy.mesh @unused = <["axis_0"=3]>
sdy.mesh @empty = <[]>

// Every tensor and every use is annotated; tensors without a sharding are replicated, even if unused or scalar.
// CHECK-LABEL: func.func @complete
// CHECK-SAME: (%[[A:.*]]: tensor<8x8xf32>, %[[U:.*]]: tensor<4xf32>, %[[Z:.*]]: tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK: %[[BLOCK:.*]] = shard.sharding @mesh split_axes = {{\[\[}}], [1, 0]] : !shard.sharding
// CHECK: %[[ROWS:.*]] = shard.sharding @mesh split_axes = {{\[\[}}0]] : !shard.sharding
// CHECK-NEXT: %[[A1:.*]] = shard.shard %[[A]] to %[[ROWS]] : tensor<8x8xf32>
// CHECK-NEXT: %[[A2:.*]] = shard.shard %[[A1]] to %[[ROWS]] annotate_for_users : tensor<8x8xf32>
// CHECK-NEXT: %[[NONE:.*]] = shard.sharding @mesh split_axes = {{\[\[}}]] : !shard.sharding
// CHECK-NEXT: shard.shard %[[U]] to %[[NONE]] : tensor<4xf32>
// CHECK-NEXT: shard.shard %[[Z]] to %[[NONE]] : tensor<f32>
// CHECK-NEXT: %[[B:.*]] = tosa.exp %[[A2]] : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: %[[B1:.*]] = shard.shard %[[B]] to %[[NONE]] : tensor<8x8xf32>
// CHECK-NEXT: %[[B2:.*]] = shard.shard %[[B1]] to %[[NONE]] annotate_for_users : tensor<8x8xf32>
// CHECK-NEXT: %[[C:.*]] = tosa.add %[[B2]], %[[A2]] :
// CHECK-NEXT: %[[C1:.*]] = shard.shard %[[C]] to %[[BLOCK]] : tensor<8x8xf32>
// CHECK-NEXT: %[[C2:.*]] = shard.shard %[[C1]] to %[[BLOCK]] annotate_for_users : tensor<8x8xf32>
// CHECK-NEXT: %[[D:.*]] = tosa.exp %[[C2]]
// CHECK-NEXT: shard.shard %[[D]] to %[[NONE]] : tensor<8x8xf32>
// CHECK-NEXT: %[[B3:.*]] = shard.shard %[[B1]] to %[[BLOCK]] annotate_for_users : tensor<8x8xf32>
// CHECK-NEXT: return %[[C2]], %[[B3]]
func.func @complete(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}p1, {}], replicated={"model"}>},
                    %u: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %z: tensor<f32>)
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>},
        tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model", "data"}]>}) {
  %0 = tosa.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = tosa.add %0, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model", "data"}]>]>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = tosa.exp %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %0 : tensor<8x8xf32>, tensor<8x8xf32>
}

// Constraints and reshards become annotations for their own users of the value, and for no other users.
// CHECK-LABEL: func.func @reshards
// CHECK: %[[COLUMNS:.*]] = shard.sharding @mesh split_axes = {{\[\[}}], [0]]
// CHECK: %[[A1:.*]] = shard.shard %arg0 to %[[ROWS:.*]] : tensor
// CHECK: %[[A2:.*]] = shard.shard %[[A1]] to %[[ROWS]] annotate_for_users : tensor
// CHECK: %[[A3:.*]] = shard.shard %[[A1]] to %[[COLUMNS]] annotate_for_users : tensor
// CHECK-NEXT: %[[A4:.*]] = shard.shard %[[A3]] to %{{.*}} annotate_for_users : tensor
// CHECK-NEXT: tosa.add %[[A4]], %[[A2]]
// CHECK-NOT: sdy.
func.func @reshards(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{}, {"data"}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"model"}, {}] %0 out_sharding=<@mesh, [{"model"}, {"data"}]> : tensor<8x8xf32>
  %2 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<8x8xf32>
  sdy.sharding_group %a group_id=0 : tensor<8x8xf32>
  %3 = tosa.add %1, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// Each result of an operation has its own sharding; other attributes stay.
// CHECK-LABEL: func.func @several_results
// CHECK-SAME: (%arg0: i1, %arg1: tensor<8x8xf32> {test.kept})
// CHECK: %[[ROWS:.*]] = shard.sharding @mesh split_axes = {{\[\[}}0]]
// CHECK-NEXT: %[[MODEL:.*]] = shard.sharding @mesh split_axes = {{\[\[}}1]]
// CHECK: %[[R:.*]]:2 = scf.if %{{.*}} -> (tensor<8x8xf32>, tensor<8xf32>)
// CHECK: %[[R1:.*]] = shard.shard %[[R]]#1 to %[[MODEL]] : tensor<8xf32>
// CHECK: %[[R0:.*]] = shard.shard %[[R]]#0 to %[[ROWS]] : tensor<8x8xf32>
func.func @several_results(%c: i1, %a: tensor<8x8xf32> {test.kept}) -> (tensor<8x8xf32>, tensor<8xf32>) {
  %0:2 = scf.if %c -> (tensor<8x8xf32>, tensor<8xf32>) {
    %1 = tensor.empty() : tensor<8xf32>
    scf.yield %a, %1 : tensor<8x8xf32>, tensor<8xf32>
  } else {
    %1 = tensor.empty() : tensor<8xf32>
    scf.yield %a, %1 : tensor<8x8xf32>, tensor<8xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>, <@mesh, [{"model"}]>]>}
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8xf32>
}

// If only a use or a function's result has a sharding, the value itself is replicated nevertheless.
// CHECK-LABEL: func.func @only_returned
// CHECK: %[[ROWS:.*]] = shard.sharding @mesh split_axes = {{\[\[}}0]]
// CHECK-NEXT: %[[NONE:.*]] = shard.sharding @mesh split_axes = {{\[\[}}]]
// CHECK-NEXT: %[[A1:.*]] = shard.shard %arg0 to %[[NONE]] : tensor<8xf32>
// CHECK-NEXT: %[[A2:.*]] = shard.shard %[[A1]] to %[[ROWS]] annotate_for_users : tensor<8xf32>
// CHECK-NEXT: return %[[A2]]
func.func @only_returned(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) {
  return %a : tensor<8xf32>
}

// A function without sharded tensors needs no annotations.
// CHECK-LABEL: func.func @unsharded
// CHECK-NEXT: return %arg0
func.func @unsharded(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@empty, [{}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// -----

// Sub-axes become axes of the grid, and uneven shards have offsets.
// CHECK: shard.grid @mesh(shape = 2x2x2) {mlir_shard.axis_names = ["a:(1)2", "a:(2)2", "b"]}
// CHECK-LABEL: func.func @sub_axes
// CHECK-NEXT: shard.sharding @mesh split_axes = {{\[\[}}1], [2]] sharded_dims_offsets = [0, 4, 7, 0, 3, 6]
// CHECK: shard.sharding @mesh split_axes = {{\[\[}}0, 1]] sharded_dims_offsets = [0, 2, 4, 5, 5]
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @sub_axes(%a: tensor<7x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(2)2}, {"b"}]>},
                    %b: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  return
}

// -----

// expected-error@+1 {{sub-axes split axis "a" of mesh @mesh at 2 and at 3, but no grid has axes for both}}
sdy.mesh @mesh = <["a"=6]>
func.func @no_grid(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2}]>},
                   %b: tensor<9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)3}]>}) {
  return
}

// -----

// expected-error@+1 {{the devices of mesh @mesh are permuted, but a grid requires devices in ascending order}}
sdy.mesh @mesh = <["a"=2], device_ids=[1, 0]>

// -----

// expected-error@+1 {{mesh @device_3 consists of the single device 3, which a 'shard.grid' cannot express}}
sdy.mesh @device_3 = <[], device_ids=[3]>

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @unreduced(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{result 0 of 'tosa.exp' is unreduced along "a", "b", which upstream's annotations cannot express: reduce it first}}
  %0 = tosa.exp %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"a", "b"}>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{argument 0 has the sharding <mesh<["a"=2]>, [{"a"}]> with an inlined mesh: run 'sdy-lift-inlined-meshes' first}}
func.func @inlined(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}]>}) {
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @manual(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'sdy.manual_computation' has no counterpart in upstream's annotations}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>
// expected-error@+1 {{argument 0 of @declared is sharded, but the function has no body for its annotation}}
func.func private @declared(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})

// -----

sdy.mesh @one = <["a"=2]>
sdy.mesh @two = <["a"=2]>
// expected-error@+1 {{argument 2 has no sharding, and the function has shardings on @one and @two: add a sharding that is replicated on one of them}}
func.func @meshes(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, [{"a"}]>},
                  %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@two, [{"a"}]>}, %c: tensor<8xf32>) {
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
// expected-error@+1 {{'tensor.empty' is sharded outside of a 'func.func', which upstream's annotations cannot express}}
%0 = tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>

// -----

sdy.mesh @mesh = <["a"=2]>
module @inner {
  // expected-error@+1 {{mesh @mesh is in a nested module, but only top-level meshes become grids}}
  sdy.mesh @mesh = <["a"=2]>
}
