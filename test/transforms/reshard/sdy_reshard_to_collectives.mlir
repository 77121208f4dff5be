// RUN: shard-opt %s --sdy-reshard-to-collectives | FileCheck %s
// RUN: shard-opt %s --sdy-reshard-to-collectives=keep-redundant-reshards=true | FileCheck %s --check-prefix=KEPT

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>
sdy.mesh @same = <["x"=2, "y"=2, "z"=4]>
sdy.mesh @turned = <["x"=2, "y"=2, "z"=4], device_ids=[15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>
sdy.mesh @other = <["a"=16]>
sdy.mesh @device = <[], device_ids=[3]>

// CHECK-LABEL: func @each_kind
// CHECK-NEXT: %[[SLICE:.*]] = sdy.all_slice [{"x"}, {}, {}] %arg0 out_sharding=<@mesh, [{"y", "x"}, {"z"}, {}]> : tensor<8x8x8xf32>
// CHECK-NEXT: %[[PERMUTE:.*]] = sdy.collective_permute %[[SLICE]] out_sharding=<@mesh, [{"x", "y"}, {"z"}, {}]> : tensor<8x8x8xf32>
// CHECK-NEXT: %[[MOVE:.*]] = sdy.all_to_all [{"z":(2)2}: 1->2] %[[PERMUTE]] out_sharding=<@mesh, [{"x", "y"}, {"z":(1)2}, {"z":(2)2}]> : tensor<8x8x8xf32>
// CHECK-NEXT: %[[GATHER:.*]] = sdy.all_gather [{}, {"z":(1)2}, {}] %[[MOVE]] out_sharding=<@mesh, [{"x", "y"}, {}, {"z":(2)2}]> : tensor<8x8x8xf32>
// CHECK-NEXT: return %[[GATHER]]
func.func @each_kind(%a: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"z"}, {?}]>}) -> tensor<8x8x8xf32> {
  %0 = sdy.reshard %a <@mesh, [{"x", "y"}, {}, {"z":(2)2}]> : tensor<8x8x8xf32>
  return %0 : tensor<8x8x8xf32>
}

// A tensor without a sharding is replicated; a reshard's result is the source of the next one.
// CHECK-LABEL: func @one_after_the_other
// CHECK-NEXT: %[[SLICE:.*]] = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]>
// CHECK-NEXT: %[[PERMUTE:.*]] = sdy.collective_permute %[[SLICE]] out_sharding=<@mesh, [{"y"}]>
// CHECK-NEXT: return %[[PERMUTE]]
func.func @one_after_the_other(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = sdy.reshard %a <@mesh, [{"x", ?}]> : tensor<?xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// CHECK-LABEL: func @nothing_moves
// CHECK-NEXT: return %arg0, %arg1, %arg1
// KEPT-LABEL: func @nothing_moves
// KEPT-NEXT: sdy.reshard %arg0 <@mesh, [{"x", ?}]>
// KEPT-NEXT: sdy.reshard %arg1 <@other, [{}]>
// KEPT-NEXT: sdy.reshard %arg1 <@mesh, [{}]>
func.func @nothing_moves(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.reshard %a <@mesh, [{"x", ?}]> : tensor<8xf32>
  %1 = sdy.reshard %b <@other, [{}]> : tensor<8xf32>
  %2 = sdy.reshard %b <@mesh, [{}]> : tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func @between_meshes
// CHECK-NEXT: %[[TURNED:.*]] = sdy.collective_permute %arg0 out_sharding=<@turned, [{"x"}]>
// CHECK-NEXT: %[[OTHER:.*]] = sdy.reshard %arg0 <@other, [{"a"}]>
// CHECK-NEXT: %[[REPLICATED:.*]] = sdy.all_gather [{"x"}] %arg0 out_sharding=<@mesh, [{}]>
// CHECK-NEXT: %[[SAME:.*]] = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y"}]>
// CHECK-NEXT: return %[[TURNED]], %[[OTHER]], %[[REPLICATED]], %[[SAME]]
func.func @between_meshes(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %0 = sdy.reshard %a <@turned, [{"x"}]> : tensor<16xf32>
  %1 = sdy.reshard %a <@other, [{"a"}]> : tensor<16xf32>
  %2 = sdy.reshard %a <@other, [{}]> : tensor<16xf32>
  %3 = sdy.reshard %a <@same, [{"y"}]> : tensor<16xf32>
  return %0, %1, %2, %3 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// CHECK-LABEL: func @one_device
// CHECK-NEXT: sdy.reshard %arg0 <@device, []>
// CHECK-NEXT: sdy.reshard %arg1 <@mesh, [{}]>
func.func @one_device(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@device, []>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.reshard %a <@device, []> : tensor<8xf32>
  %1 = sdy.reshard %b <@mesh, [{}]> : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// Partial values stay partial, even if no dimension remains sharded.
// CHECK-LABEL: func @partial
// CHECK-NEXT: sdy.all_gather [{"x"}] %arg0 out_sharding=<@mesh, [{}], unreduced=max{"y"}>
func.func @partial(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced=max{"y"}>}) -> tensor<8xf32> {
  %0 = sdy.reshard %a <@mesh, [{}], unreduced=max{"y"}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func @behind_a_barrier
// CHECK-NEXT: sdy.propagation_barrier %arg0
// CHECK-NEXT: %[[GATHER:.*]] = sdy.all_gather [{"x"}] %arg0
// CHECK-NEXT: return %[[GATHER]]
func.func @behind_a_barrier(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=BACKWARD : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// The sharding of a loop's result is also that of its block argument.
// CHECK-LABEL: func @in_a_loop
// CHECK: do {
// CHECK-NEXT: sdy.all_to_all [{"x"}: 0->1] %iterArg out_sharding=<@mesh, [{}, {"x"}]>
func.func @in_a_loop(%a: tensor<8x8xf32>, %b: tensor<i1>) -> tensor<8x8xf32> {
  %0 = stablehlo.while(%c = %a) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
  cond {
    stablehlo.return %b : tensor<i1>
  } do {
    %1 = sdy.reshard %c <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
    stablehlo.return %1 : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}
