// RUN: shard-opt %s --split-input-file --shard-unify-meshes | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-unify-meshes --shard-unify-meshes | FileCheck %s --check-prefix=TWICE

// The main mesh is the mesh of most arguments and results. It comes first, and unreferenced meshes are erased.
// CHECK: module {
// CHECK-NEXT: sdy.mesh @m = <["a"=2, "b"=3]>
// CHECK-NEXT: sdy.mesh @reversed
// CHECK-NEXT: func.func @main
// TWICE: sdy.mesh @m
// TWICE-NEXT: sdy.mesh @reversed
// TWICE-NEXT: func.func @main
sdy.mesh @line = <["x"=6]>
sdy.mesh @m = <["a"=2, "b"=3]>
sdy.mesh @reversed = <["a"=2, "b"=3], device_ids=[5, 4, 3, 2, 1, 0]>
sdy.mesh @transposed = <["q"=3, "p"=2], device_ids=[0, 3, 1, 4, 2, 5]>

// CHECK-SAME: (%arg0: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}p1, {?}]>}
// CHECK-SAME: %arg1: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", "b"}, {}]>}
// CHECK-SAME: -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], replicated={"a", "b"}>})
func.func @main(%a: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}p1, {?}]>},
                %b: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@line, [{"x"}, {}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], replicated={"a", "b"}>}) {
  // CHECK-NEXT: stablehlo.add {{.*}}<[<@m, [{}, {"a"}]>]>
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@line, [{}, {"x":(1)2}]>]>} : tensor<12x6xf32>
  // The devices of @transposed are in the order of the axes of @m, transposed.
  // CHECK-NEXT: sdy.sharding_constraint %{{.*}} <@m, [{"a"}, {"b", ?}]>
  %1 = sdy.sharding_constraint %0 <@transposed, [{"p"}, {"q", ?}]> : tensor<12x6xf32>
  // The order of devices is not visible within the function.
  // CHECK-NEXT: sdy.reshard %{{.*}} <@m, [{"b"}, {"a"}]>
  %2 = sdy.reshard %1 <@reversed, [{"b"}, {"a"}]> : tensor<12x6xf32>
  // CHECK-NEXT: sdy.all_gather [{"b"}, {"a"}] %{{.*}} out_sharding=<@m, [{}, {}]>
  %3 = sdy.all_gather [{"b"}, {"a"}] %2 out_sharding=<@reversed, [{}, {}]> : tensor<12x6xf32>
  // CHECK-NEXT: return
  return %3 : tensor<12x6xf32>
}

// The order of devices is visible to callers.
// CHECK-LABEL: func.func @order_of_signature
// CHECK-SAME: %arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"a", ?}]>}
// CHECK-SAME: %arg1: tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{?}]>}
// CHECK-SAME: -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}, tensor<12xf32>)
func.func @order_of_signature(%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"a", ?}]>},
                              %b: tensor<12xf32> {sdy.sharding = #sdy.sharding<@reversed, [{?}]>})
    -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"b"}]>}, tensor<12xf32>) {
  // CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@m, [{"a", ?}]>
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[A]], %arg1
  // CHECK-NEXT: %[[R:.*]] = sdy.reshard %[[SUM]] <@reversed, [{"b"}]>
  // CHECK-NEXT: return %[[R]], %[[SUM]]
  %0 = stablehlo.add %a, %b : tensor<12xf32>
  return %0, %0 : tensor<12xf32>, tensor<12xf32>
}

// CHECK-LABEL: func.func private @private(
// CHECK-SAME: tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}
func.func private @private(%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"a"}]>}) -> tensor<12xf32> {
  return %a : tensor<12xf32>
}

// A body may read its device number.
// CHECK-LABEL: func.func @manual
func.func @manual(%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) {
  // CHECK-NEXT: %[[IN:.*]] = sdy.reshard %arg0 <@reversed, [{"b", "a"}]>
  // CHECK-NEXT: %[[OUT:.*]] = sdy.manual_computation(%[[IN]]) in_shardings=[<@reversed, [{"b", "a"}]>] out_shardings=[<@reversed, [{"b"}]>] manual_axes={"b"}
  // CHECK-NEXT: stablehlo.negate {{.*}}<[<@reversed, [{"a"}]>]>
  // CHECK: %[[BACK:.*]] = sdy.reshard %[[OUT]] <@m, [{"b"}]>
  // CHECK-NEXT: return %[[BACK]]
  %0 = sdy.manual_computation(%a) in_shardings=[<@reversed, [{"b", "a"}]>] out_shardings=[<@reversed, [{"b"}]>] manual_axes={"b"} (%b: tensor<4xf32>) {
    %1 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@reversed, [{"a"}]>]>} : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<12xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// Neither mesh has axes fine enough for those of the other.
// CHECK: sdy.mesh @m_0 = <["x"=2, "a_0"=2, "b"=2]>
// CHECK-NEXT: func.func @refined
sdy.mesh @m = <["a"=4, "b"=2]>
sdy.mesh @n = <["x"=2, "a"=4]>
// CHECK-SAME: <@m_0, [{"x", "a_0"}, {"b"}]>
// CHECK-SAME: <@m_0, [{"a_0", "b"}, {"x"}]>
func.func @refined(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>},
                   %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@n, [{"a"}, {"x"}]>}) -> tensor<16x8xf32> {
  // CHECK-NEXT: stablehlo.add {{.*}}<[<@m_0, [{"x", "a_0", "b"}, {}]>]>
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<mesh<["y"=8]>, [{"y"}, {}]>]>} : tensor<16x8xf32>
  // CHECK: sdy.manual_computation({{.*}}) in_shardings=[<@m_0, [{"a_0", "b"}, {}]>] out_shardings=[<@m_0, [{"a_0", "b"}, {}]>] manual_axes={"a_0", "b"}
  %1 = sdy.manual_computation(%0) in_shardings=[<@n, [{"a"}, {}]>] out_shardings=[<@n, [{"a"}, {}]>] manual_axes={"a"} (%c: tensor<4x8xf32>) {
    // CHECK-NEXT: sdy.all_slice [{"x"}, {}] {{.*}} out_sharding=<@m_0, [{"x"}, {}]>
    // CHECK-NEXT: sdy.all_to_all [{"x"}: 0->1] {{.*}} out_sharding=<@m_0, [{}, {"x"}]>
    %2 = sdy.all_slice [{"x"}, {}] %c out_sharding=<@n, [{"x"}, {}]> : tensor<4x8xf32>
    %3 = sdy.all_to_all [{"x"}: 0->1] %2 out_sharding=<@n, [{}, {"x"}]> : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}

// -----

// Axes that divide the devices differently become the same axes with another order of devices.
// CHECK: sdy.mesh @m = <["a"=2, "b"=3]>
// CHECK-NEXT: sdy.mesh @n_0 = <["a"=2, "b"=3], device_ids=[0, 2, 4, 1, 3, 5]>
sdy.mesh @m = <["a"=2, "b"=3]>
sdy.mesh @n = <["a"=3, "b"=2]>
// CHECK-NEXT: func.func @cut_otherwise(%arg0: {{.*}}<@m, [{"a"}]>}) -> ({{.*}}<@n_0, [{"b"}]>})
func.func @cut_otherwise(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@n, [{"a"}]>}) {
  // CHECK-NEXT: stablehlo.negate {{.*}}<[<@m, [{"a"}]>]>
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@n, [{"b"}]>]>} : tensor<6xf32>
  // CHECK-NEXT: sdy.reshard %{{.*}} <@n_0, [{"b"}]>
  return %0 : tensor<6xf32>
}

// -----

// Halves and thirds of one axis become axes of two meshes with different orders. A replicated tensor may be on either.
// CHECK: sdy.mesh @m = <["a"=2, "b"=3]>
// CHECK-NEXT: sdy.mesh @[[OTHER:.*]] = <["a"=2, "b"=3], device_ids=[0, 2, 4, 1, 3, 5]>
sdy.mesh @m = <["a"=2, "b"=3]>
sdy.mesh @n = <["x"=6]>
// CHECK-NEXT: func.func @sub_axes_of_one(%arg0: {{.*}}<@m, [{"a"}]>}, %arg1: {{.*}}<@m, [{"a"}]>})
// CHECK-SAME: -> ({{.*}}<@[[OTHER]], [{"b"}]>})
func.func @sub_axes_of_one(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>},
                           %b: tensor<6xf32> {sdy.sharding = #sdy.sharding<@n, [{"x":(1)2}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@n, [{"x":(1)3}]>}) {
  // CHECK-NEXT: stablehlo.add {{.*}}<[<@m, [{}]>]>
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : tensor<6xf32>
  // CHECK-NEXT: sdy.reshard %{{.*}} <@[[OTHER]], [{"b"}]>
  return %0 : tensor<6xf32>
}

// -----

// The operand and the result of a collective are on one mesh with the axes of the collective.
// CHECK: sdy.mesh @n_0 = <["x_0"=2, "x_1"=2, "x_2"=3]>
// CHECK: func.func @collective(%arg0: {{.*}}<@n_0, [{"x_0", "x_1"}]>}, %arg1: {{.*}}<@{{.*}}, [{"x_2", "x_0"}]>})
sdy.mesh @n = <["x"=12]>
func.func @collective(%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@n, [{"x":(1)4}]>},
                      %b: tensor<12xf32> {sdy.sharding = #sdy.sharding<@n, [{"x":(1)6}]>}) -> tensor<12xf32> {
  // CHECK: sdy.all_gather [{"x_1"}] %arg0 out_sharding=<@n_0, [{"x_0"}]>
  %0 = sdy.all_gather [{"x":(2)2}] %a out_sharding=<@n, [{"x":(1)2}]> : tensor<12xf32>
  // CHECK: sdy.all_gather [{"x_2", "x_0"}] %{{.*}} out_sharding=<@n_0, [{}]>
  %1 = sdy.all_gather [{"x":(1)6}] %b out_sharding=<@n, [{}]> : tensor<12xf32>
  %2 = stablehlo.add %0, %1 : tensor<12xf32>
  return %2 : tensor<12xf32>
}

// -----

// A tensor that a function takes and returns on one device is on all devices.
// CHECK: sdy.mesh @one
// CHECK-NEXT: func.func @single_device(%arg0: tensor<6xf32>, %arg1: {{.*}}<@m, [{"a"}]>}) -> tensor<6xf32>
// CHECK-NEXT: stablehlo.negate {{.*}}<[<@one, []>]>
sdy.mesh @m = <["a"=2]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @single_device(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@one, []>},
                         %b: tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@one, []>}) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// A single mesh is not changed.
// CHECK: sdy.mesh @unused
// CHECK: func.func @one_mesh({{.*}}<mesh<["a"=2]>, [{"a"}]>})
sdy.mesh @unused = <["a"=2]>
func.func @one_mesh(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}]>}) -> tensor<6xf32> {
  return %a : tensor<6xf32>
}
