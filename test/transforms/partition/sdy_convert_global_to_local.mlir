// RUN: shard-opt %s --sdy-convert-global-to-local | FileCheck %s --check-prefixes=CHECK,TOGETHER,SLICED
// RUN: shard-opt %s --sdy-convert-global-to-local='per-dim-all-gather=true combine-multi-dimension-reduce-scatter=true' | FileCheck %s --check-prefixes=CHECK,PER-DIM,COMBINED
// RUN: shard-opt %s --sdy-convert-global-to-local='enable-rgv3=true' | FileCheck %s --check-prefix=AXES
// RUN: shard-opt %s --sdy-convert-global-to-local='replica-count=6' | FileCheck %s --check-prefix=REPLICA

sdy.mesh @mesh = <["a"=2, "b"=3]>
sdy.mesh @turned = <["a"=2, "b"=3], device_ids=[5, 4, 3, 2, 1, 0]>

// New channels are numbered after the existing ones.
// CHECK-LABEL: func @product(
// CHECK-SAME:      %[[L:.*]]: tensor<3x4xf32> {{{.*}}}, %[[R:.*]]: tensor<4x5xf32> {{{.*}}}) -> (tensor<3x5xf32>
// CHECK-NEXT:    %[[DOT:.*]] = stablehlo.dot_general %[[L]], %[[R]], contracting_dims = [1] x [0]
// CHECK-SAME:      (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
// CHECK-NEXT:    %[[SUM:.*]] = "stablehlo.all_reduce"(%[[DOT]])
// CHECK-SAME:      channel_handle = #stablehlo.channel_handle<handle = 8, type = 1>
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>
// CHECK-SAME:      use_global_device_ids
// CHECK:           stablehlo.add
// CHECK:         return %[[SUM]] : tensor<3x5xf32>
// AXES-LABEL:  func @product(
// AXES:          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "b">]>
func.func @product(%l: tensor<6x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                   %r: tensor<12x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
    -> (tensor<6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<6x12xf32>, tensor<12x5xf32>) -> tensor<6x5xf32>
  %1 = sdy.all_reduce {"b"} %0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<6x5xf32>
  return %1 : tensor<6x5xf32>
}

// CHECK-LABEL: func @gathered(
// TOGETHER:      %[[ONE:.*]] = stablehlo.reshape %{{.*}} : (tensor<2x1xf32>) -> tensor<1x2x1xf32>
// TOGETHER-NEXT: %[[ALL:.*]] = "stablehlo.all_gather"(%[[ONE]]) {{.*}} : (tensor<1x2x1xf32>) -> tensor<6x2x1xf32>
// TOGETHER-NEXT: %[[CUT:.*]] = stablehlo.reshape %[[ALL]] : (tensor<6x2x1xf32>) -> tensor<2x3x2x1xf32>
// TOGETHER-NEXT: %[[MOVED:.*]] = stablehlo.transpose %[[CUT]], dims = [0, 2, 1, 3]
// TOGETHER-NEXT: stablehlo.reshape %[[MOVED]] : (tensor<2x2x3x1xf32>) -> tensor<4x3xf32>
// PER-DIM:       %[[LAST:.*]] = "stablehlo.all_gather"(%{{.*}}) <{all_gather_dim = 1 : i64
// PER-DIM:       "stablehlo.all_gather"(%[[LAST]]) <{all_gather_dim = 0 : i64
func.func @gathered(%x: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<4x3xf32> {
  %0 = sdy.all_gather [{"a"}, {"b"}] %x out_sharding=<@mesh, [{}, {}]> : tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// CHECK-LABEL: func @scattered(
// SLICED:        %[[SUM:.*]] = "stablehlo.all_reduce"
// SLICED:        stablehlo.dynamic_slice %[[SUM]], %{{.*}}, sizes = [2, 1]
// COMBINED:      %[[BLOCKS:.*]] = stablehlo.reshape %{{.*}} : (tensor<2x3x2x1xf32>) -> tensor<6x2x1xf32>
// COMBINED-NEXT: "stablehlo.reduce_scatter"(%[[BLOCKS]])
func.func @scattered(%x: tensor<4x3xf32>) -> (tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = sdy.reduce_scatter [{"a"}, {"b"}] %x out_sharding=<@mesh, [{"a"}, {"b"}]> : tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// CHECK-LABEL: func @exchanged(
// CHECK:         "stablehlo.all_to_all"(%{{.*}}) <{
// CHECK-SAME:      concat_dimension = 0 : i64
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 3], [1, 4], [2, 5]]>
// CHECK-SAME:      split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x6xf32>) -> tensor<4x3xf32>
func.func @exchanged(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
  %0 = sdy.all_to_all [{"a"}: 0->1] %x out_sharding=<@mesh, [{}, {"a"}]> : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func @to_other_order(
// CHECK:         source_target_pairs = dense<{{\[\[}}0, 5], [1, 4], [2, 3], [3, 2], [4, 1], [5, 0]]> : tensor<6x2xi64>
func.func @to_other_order(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@turned, [{"a", "b"}]>}) {
  %0 = sdy.collective_permute %x out_sharding=<@turned, [{"a", "b"}]> : tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL:   func @made_on_the_device(
// CHECK:           %[[WHOLE:.*]] = stablehlo.constant dense<[4, 3, 2, 1]> : tensor<4xi32>
// CHECK-NEXT:      %[[OWN:.*]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT:      %[[DEVICE:.*]] = stablehlo.convert %[[OWN]] : (tensor<ui32>) -> tensor<i64>
// CHECK-NEXT:      %[[TABLE:.*]] = stablehlo.constant dense<[2, 2, 2, 0, 0, 0]> : tensor<6xi64>
// CHECK-NEXT:      %[[ENTRY:.*]] = stablehlo.dynamic_slice %[[TABLE]], %[[DEVICE]], sizes = [1]
// CHECK-NEXT:      %[[START:.*]] = stablehlo.reshape %[[ENTRY]]
// CHECK-NEXT:      %[[BLOCK:.*]] = stablehlo.dynamic_slice %[[WHOLE]], %[[START]], sizes = [2]
// CHECK-NEXT:      %[[ONES:.*]] = stablehlo.constant dense<1> : tensor<2xi32>
// CHECK-NEXT:      %[[COUNT:.*]] = stablehlo.iota dim = 0 : tensor<2xi32>
// CHECK:           %[[NUMBERS:.*]] = stablehlo.add %[[COUNT]], %{{.*}} : tensor<2xi32>
// CHECK-NEXT:      return %[[BLOCK]], %[[ONES]], %[[NUMBERS]]
// REPLICA-LABEL: func @made_on_the_device(
// REPLICA:         stablehlo.replica_id
func.func @made_on_the_device() -> (
    tensor<4xi32> {sdy.sharding = #sdy.sharding<@turned, [{"a"}]>},
    tensor<4xi32> {sdy.sharding = #sdy.sharding<@turned, [{"a"}]>},
    tensor<4xi32> {sdy.sharding = #sdy.sharding<@turned, [{"a"}]>}) {
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@turned, [{"a"}]>]>} dense<[4, 3, 2, 1]> : tensor<4xi32>
  %1 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@turned, [{"a"}]>]>} dense<1> : tensor<4xi32>
  %2 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@turned, [{"a"}]>]>} : tensor<4xi32>
  return %0, %1, %2 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}

// CHECK-LABEL: func @inlined(
// CHECK-SAME:      %[[X:.*]]: tensor<2x2xf32>
// CHECK-NEXT:    %[[Y:.*]] = stablehlo.negate %[[X]] {{.*}} : tensor<2x2xf32>
// CHECK-NEXT:    "stablehlo.collective_permute"(%[[Y]]) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>
func.func @inlined(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>]
      manual_axes={"a"} (%y: tensor<2x6xf32>) {
    %1 = stablehlo.negate %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>} : tensor<2x6xf32>
    %2 = "stablehlo.collective_permute"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>,
        source_target_pairs = dense<[[0, 3]]> : tensor<1x2xi64>}>
        {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    sdy.return %2 : tensor<2x6xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func @named(
// CHECK:         sdy.named_computation<"halves">(%{{.*}}, %{{.*}}) in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{}]>]
// CHECK-SAME:      (%[[Y:.*]]: tensor<2xf32>, %{{.*}}: tensor<2xf32>) {
// CHECK-NEXT:      stablehlo.abs %[[Y]] {{.*}} : tensor<2xf32>
// CHECK:         } : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
func.func @named(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %z: tensor<2xf32>)
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = sdy.named_computation<"halves">(%x, %z) in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"a"}]>]
      (%y: tensor<4xf32>, %w: tensor<2xf32>) {
    %1 = stablehlo.abs %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func @loop(
// CHECK:         stablehlo.while(%[[V:.*]] = %{{.*}}) : tensor<2xf32>
// CHECK:         func.call @step(%[[V]]) {{.*}} : (tensor<2xf32>) -> tensor<2xf32>
// CHECK:       func private @step(%{{.*}}: tensor<2xf32>
func.func @loop(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %go: tensor<i1>)
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.while(%v = %x) : tensor<4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>}
  cond {
    stablehlo.return %go : tensor<i1>
  } do {
    %1 = func.call @step(%v) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @step(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  return %x : tensor<4xf32>
}

// All devices receive the numbers that the first one draws.
// CHECK-LABEL: func @drawn(
// CHECK:         %[[DRAWN:.*]] = stablehlo.rng %{{.*}} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
// CHECK:         %[[FLAGS:.*]] = stablehlo.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
// CHECK-NEXT:    %[[FLAG:.*]] = stablehlo.dynamic_slice %[[FLAGS]]
// CHECK-NEXT:    %[[MASK:.*]] = stablehlo.broadcast_in_dim %[[FLAG]], dims = [0] : (tensor<1xi1>) -> tensor<4xi1>
// CHECK:         %[[FIRST:.*]] = stablehlo.select %[[MASK]], %[[DRAWN]], %{{.*}}
// CHECK:         %[[ALL:.*]] = "stablehlo.all_reduce"(%[[FIRST]])
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1, 2, 3, 4, 5]]>
// CHECK:         stablehlo.dynamic_slice %[[ALL]], %{{.*}}, sizes = [2]
func.func @drawn(%low: tensor<f32>, %high: tensor<f32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %shape = stablehlo.constant dense<4> : tensor<1xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Each device draws all bits and slices its own.
// CHECK-LABEL: func @bits(
// CHECK:         %{{.*}}, %[[ALL:.*]] = stablehlo.rng_bit_generator %{{.*}} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xi32>)
// CHECK:         stablehlo.dynamic_slice %[[ALL]], %{{.*}}, sizes = [2]
func.func @bits(%state: tensor<2xui64>) -> (tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = DEFAULT
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{"a"}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xi32>)
  return %1 : tensor<4xi32>
}
