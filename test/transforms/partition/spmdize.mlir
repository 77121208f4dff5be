// RUN: shard-opt %s --split-input-file --spmdize | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// The mesh becomes a grid, functions take and return shards, and nothing of sdy is left.
// CHECK-LABEL: module
// CHECK-NOT: sdy
// CHECK: shard.grid @mesh(shape = 2x4)
// CHECK-LABEL: func.func @elementwise(%arg0: tensor<4x2xf32> {jax.kept}) -> tensor<4x2xf32> {
// CHECK-NEXT: arith.negf %arg0 : tensor<4x2xf32>
// CHECK-NOT: sdy
func.func @elementwise(%a: tensor<8x8xf32> {jax.kept, sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = arith.negf %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// An axis that moves from one dimension to another needs one all-to-all.
// CHECK-LABEL: func.func @reshards(%arg0: tensor<128x1024xf32>)
// CHECK-NEXT: %[[S:.*]] = shard.all_to_all %arg0 on @mesh grid_axes = [1] split_axis = 1 concat_axis = 0 : tensor<128x1024xf32> -> tensor<512x256xf32>
// CHECK-NEXT: %[[T:.*]] = shard.all_to_all %[[S]] on @mesh grid_axes = [0] split_axis = 1 concat_axis = 0 : tensor<512x256xf32> -> tensor<1024x128xf32>
// CHECK-NEXT: return %[[S]], %[[T]]
func.func @reshards(%a: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>})
    -> (tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
        tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}) {
  %0 = sdy.reshard %a <@mesh, [{"x"}, {"y"}]> : tensor<1024x1024xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"y", "x"}]> : tensor<1024x1024xf32>
  return %0, %1 : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// A gather along axes that are not in the order of the grid becomes one gather for each axis.
// CHECK-LABEL: func.func @descending(%arg0: tensor<2xf32>)
// CHECK-NEXT: %[[G:.*]] = shard.all_gather %arg0 on @mesh grid_axes = [0] gather_axis = 0 : tensor<2xf32> -> tensor<4xf32>
// CHECK-NEXT: %[[H:.*]] = shard.all_gather %[[G]] on @mesh grid_axes = [1] gather_axis = 0 : tensor<4xf32> -> tensor<16xf32>
// CHECK-NEXT: return %[[H]]
func.func @descending(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>}) -> tensor<16xf32> {
  return %a : tensor<16xf32>
}

// An axis that the source does not use is sliced first.
// CHECK-LABEL: func.func @slice_first(%arg0: tensor<8x8xf32>)
// CHECK-NEXT: %[[S:.*]] = shard.all_slice %arg0 on @mesh grid_axes = [1] slice_axis = 1 : tensor<8x8xf32> -> tensor<8x2xf32>
// CHECK-NEXT: %[[G:.*]] = shard.all_gather %[[S]] on @mesh grid_axes = [0] gather_axis = 0 : tensor<8x2xf32> -> tensor<16x2xf32>
// CHECK-NEXT: return %[[G]]
func.func @slice_first(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  return %a : tensor<16x8xf32>
}

// Partial sums are reduced; the initial values are counted once, here by the first device along the axis.
// CHECK-LABEL: func.func @accumulated(%arg0: tensor<8x4xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<8x8xf32>)
// CHECK: %[[I:.*]] = shard.process_multi_index on @mesh axes = [1] : index
// CHECK: %[[F:.*]] = arith.cmpi eq, %[[I]]
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<8x8xf32>
// CHECK: %[[O:.*]] = arith.select %[[F]], %arg2, %[[Z]] : tensor<8x8xf32>
// CHECK: %[[R:.*]] = linalg.matmul ins(%arg0, %arg1 : tensor<8x4xf32>, tensor<4x8xf32>) outs(%[[O]] : tensor<8x8xf32>)
// CHECK: shard.all_reduce %[[R]] on @mesh grid_axes = [1] : tensor<8x8xf32> -> tensor<8x8xf32>
func.func @accumulated(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A maximum may have the same initial value on every device.
// CHECK-LABEL: func.func @maximum
// CHECK-NOT: arith.select
// CHECK: shard.all_reduce %{{.*}} on @mesh grid_axes = [0] reduction = max : tensor<8xf32> -> tensor<8xf32>
func.func @maximum(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.reduce {arith.maximumf} ins(%a : tensor<8x8xf32>) outs(%b : tensor<8xf32>) dimensions = [0]
  return %0 : tensor<8xf32>
}

// A reduction that is already explicit is not repeated.
// CHECK-LABEL: func.func @written_out
// CHECK: shard.all_reduce
// CHECK-NOT: shard.all_reduce
// CHECK: return
func.func @written_out(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Reductions that sdy cannot express are combined immediately.
// CHECK-LABEL: func.func @product
// CHECK: stablehlo.reduce
// CHECK-NEXT: shard.all_reduce {{.*}} reduction = product
// CHECK: return
func.func @product(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.multiply across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// A splat becomes a smaller splat; other constants are sliced.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT: arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
// CHECK-NEXT: shard.all_slice %[[C]] on @mesh grid_axes = [0] slice_axis = 0 : tensor<4xi32> -> tensor<2xi32>
func.func @constants() -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = arith.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
  %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<[1, 2, 3, 4]> : tensor<4xi32>
  return %0, %1 : tensor<8xf32>, tensor<4xi32>
}

// Indices of a sharded loop include the offset of the shard.
// CHECK-LABEL: func.func @indices
// CHECK: %[[I:.*]]:2 = shard.process_multi_index on @mesh axes = [1, 0] : index, index
// CHECK: arith.muli %[[I]]#0
// CHECK: %[[D:.*]] = arith.addi %{{.*}}, %[[I]]#1
// CHECK: %[[O:.*]] = arith.muli %[[D]]
// CHECK: linalg.generic
// CHECK: %[[L:.*]] = linalg.index 0
// CHECK-NEXT: arith.addi %[[L]], %[[O]]
func.func @indices() -> (tensor<16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>}) {
  %0 = tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}]>]>} : tensor<16xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%0 : tensor<16xi32>)
    attrs = {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}]>]>} {
    ^bb0(%o: i32):
      %2 = linalg.index 0 : index
      %3 = arith.index_cast %2 : index to i32
      linalg.yield %3 : i32
    } -> tensor<16xi32>
  return %1 : tensor<16xi32>
}

// An op without sharded tensors needs no rule.
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: tensor.extract %arg0
func.func @whole(%a: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %a[%i] : tensor<8xf32>
  return %0 : f32
}

// The operands of a call are resharded to the shardings of the callee's arguments.
// CHECK-LABEL: func.func @caller(%arg0: tensor<8xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %[[S:.*]] = shard.all_slice %arg0 on @mesh grid_axes = [0] slice_axis = 0
// CHECK-NEXT: call @callee(%[[S]]) : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: shard.all_slice
// CHECK-LABEL: func.func private @callee(%arg0: tensor<4xf32>) -> tensor<8xf32> {
// CHECK-NEXT: shard.all_gather %arg0
func.func @caller(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = call @callee(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @callee(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// -----

// If a sharding uses a sub-axis, the grid has a separate axis for it.
sdy.mesh @mesh = <["x"=8, "y"=2]>

// CHECK: shard.grid @mesh(shape = 2x2x2x2)
// CHECK-LABEL: func.func @sub_axes(%arg0: tensor<2x8xf32>)
// CHECK-NEXT: shard.all_gather %arg0 on @mesh grid_axes = [1, 2] gather_axis = 0 : tensor<2x8xf32> -> tensor<8x8xf32>
func.func @sub_axes(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"y"}]>},
        tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)2}, {}]>}) {
  return %a, %a : tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

// Without a mesh, the module is not changed: a module without shardings is its own local program.
// CHECK-LABEL: func.func @no_mesh(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT: arith.negf %arg0 : tensor<8xf32>
func.func @no_mesh(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.negf %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>

// Values that a device lacks are zero before the sum.
// CHECK-LABEL: func.func @gathered_rows
// CHECK:         %[[ROWS:.*]] = "stablehlo.gather"(%{{.*}}) {{.*}} (tensor<4x6xf32>, tensor<5xi32>) -> tensor<5x6xf32>
// CHECK:         %[[OWN:.*]] = stablehlo.select %{{.*}}, %[[ROWS]], %{{.*}}
// CHECK:         shard.all_reduce %[[OWN]] on
func.func @gathered_rows(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %i: tensor<5xi32>) -> tensor<5x6xf32> {
  %0 = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
      start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}
    : (tensor<8x6xf32>, tensor<5xi32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// A dimension keeps its size, but its elements move across shards.
// CHECK-LABEL: func.func @moved_by_a_pad
// CHECK: shard.all_gather
// CHECK: tensor.pad {{.*}} low[-1, 0] high[1, 0]
func.func @moved_by_a_pad(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %c = arith.constant 1.0 : f32
  %0 = tensor.pad %a low[-1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32> to tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Sums that the first collective does not reduce stay partial until the second one reduces them.
// CHECK-LABEL: func.func @reduced_in_two_steps
// CHECK: %[[PARTIAL:.*]] = stablehlo.dot
// CHECK-NEXT: %[[HALF:.*]] = shard.reduce_scatter %[[PARTIAL]] on @mesh grid_axes = [0]
// CHECK-NEXT: %[[ALL:.*]] = shard.reduce_scatter %[[HALF]] on @mesh grid_axes = [1]
// CHECK-NEXT: return %[[ALL]]
func.func @reduced_in_two_steps(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>}, %b: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.reduce_scatter [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x4xf32>
  %2 = sdy.reduce_scatter [{"y"}, {}] %1 out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
