// RUN: shard-opt %s --sdy-pad-for-divisibility | FileCheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>

// CHECK-LABEL: func @even
func.func @even(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK-NEXT: stablehlo.abs %arg0
  // CHECK-NEXT: return
  %0 = stablehlo.abs %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Elementwise ops are padded with the padding of their operands. Gathered tensors are sliced.
// CHECK-LABEL: func @elementwise
func.func @elementwise(%a: tensor<7xf32>) -> tensor<7xf32> {
  // CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  // CHECK-NEXT: %[[PADDED:.*]] = stablehlo.pad %arg0, %[[ZERO]], low = [0], high = [1], interior = [0] : (tensor<7xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[SLICED:.*]] = sdy.all_slice [{"x"}] %[[PADDED]] out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  // CHECK-NEXT: %[[EXP:.*]] = stablehlo.exponential %[[SLICED]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  // CHECK-NEXT: %[[GATHERED:.*]] = sdy.all_gather [{"x"}] %[[EXP]] out_sharding=<@mesh, [{}]> : tensor<8xf32>
  // CHECK-NEXT: %[[CUT:.*]] = stablehlo.slice %[[GATHERED]] [0:7] {{.*}} : (tensor<8xf32>) -> tensor<7xf32>
  // CHECK-NEXT: return %[[CUT]]
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %2 : tensor<7xf32>
}

// The padding of a reduced dimension is the neutral element of the reduction.
// CHECK-LABEL: func @maximum
func.func @maximum(%a: tensor<7x3xf32>, %init: tensor<f32>) -> tensor<3xf32> {
  %0 = sdy.all_slice [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x3xf32>
  // CHECK: %[[SLICED:.*]] = sdy.all_slice
  // CHECK-NEXT: %[[NEUTRAL:.*]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // CHECK-NEXT: %[[IOTA:.*]] = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x3xi32>
  // CHECK-NEXT: %[[LIMIT:.*]] = stablehlo.constant dense<7> : tensor<i32>
  // CHECK-NEXT: %[[LIMITS:.*]] = stablehlo.broadcast_in_dim %[[LIMIT]]
  // CHECK-NEXT: %[[MASK:.*]] = stablehlo.compare LT, %[[IOTA]], %[[LIMITS]]
  // CHECK-NEXT: %[[FILL:.*]] = stablehlo.broadcast_in_dim %[[NEUTRAL]]
  // CHECK-NEXT: %[[MASKED:.*]] = stablehlo.select %[[MASK]], %[[SLICED]], %[[FILL]]
  // CHECK-NEXT: stablehlo.reduce(%[[MASKED]] init: %arg1) applies stablehlo.maximum across dimensions = [0] : (tensor<8x3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = stablehlo.reduce(%0 init: %init) applies stablehlo.maximum across dimensions = [0] : (tensor<7x3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = sdy.all_reduce max {"x"} %1 out_sharding=<@mesh, [{}]> : tensor<3xf32>
  return %2 : tensor<3xf32>
}

// Padding that is already zero needs no mask.
// CHECK-LABEL: func @sum_of_zeros
func.func @sum_of_zeros(%a: tensor<7x3xf32>, %init: tensor<f32>) -> tensor<3xf32> {
  %0 = sdy.all_slice [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x3xf32>
  // CHECK-NOT: stablehlo.select
  // CHECK: stablehlo.reduce
  %1 = stablehlo.reduce(%0 init: %init) applies stablehlo.add across dimensions = [0] : (tensor<7x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// For an unknown body, the initial value is the neutral element.
// CHECK-LABEL: func @any_body
func.func @any_body(%a: tensor<7xf32>, %init: tensor<f32>) -> tensor<f32> {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  // CHECK: %[[FILL:.*]] = stablehlo.broadcast_in_dim %arg1
  // CHECK-NEXT: stablehlo.select %{{.*}}, %{{.*}}, %[[FILL]]
  %1 = stablehlo.reduce(%0 init: %init) across dimensions = [0] : (tensor<7xf32>, tensor<f32>) -> tensor<f32>
   reducer(%l: tensor<f32>, %r: tensor<f32>) {
    %2 = stablehlo.add %l, %r : tensor<f32>
    %3 = stablehlo.abs %2 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }
  return %1 : tensor<f32>
}

// Ops that need all elements run on the gathered tensor, and their result is sharded afterwards.
// CHECK-LABEL: func @sorted
func.func @sorted(%a: tensor<7x3xf32>) -> tensor<7x3xf32> {
  %0 = sdy.all_slice [{"x"}, {"y"}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<7x3xf32>
  // CHECK: %[[GATHERED:.*]] = sdy.all_gather [{"x"}, {}] %{{.*}} out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x4xf32>
  // CHECK-NEXT: %[[CUT:.*]] = stablehlo.slice %[[GATHERED]] [0:7, 0:4]
  // CHECK-NEXT: %[[SORTED:.*]] = "stablehlo.sort"(%[[CUT]])
  // CHECK: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : (tensor<7x4xf32>) -> tensor<7x4xf32>
  // CHECK: %[[PADDED:.*]] = stablehlo.pad %[[SORTED]]
  // CHECK-NEXT: sdy.all_slice [{"x"}, {}] %[[PADDED]] out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x4xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %2 = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<7x3xf32>) -> tensor<7x3xf32>
  %3 = sdy.all_gather [{"x"}, {"y"}] %1 out_sharding=<@mesh, [{}, {}]> : tensor<7x3xf32>
  return %3 : tensor<7x3xf32>
}

// Padding of the input that the op would move into the result is replaced by the op's padding value.
// CHECK-LABEL: func @pad_to_the_left
func.func @pad_to_the_left(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %fill: tensor<f32>) -> tensor<7xf32> {
  // CHECK-NEXT: %[[CUT:.*]] = stablehlo.slice %arg0 [0:8]
  // CHECK: %[[MASKED:.*]] = stablehlo.select %{{.*}}, %[[CUT]]
  // CHECK-NEXT: stablehlo.pad %[[MASKED]], %arg1, low = [-1], high = [1], interior = [0]
  %0 = stablehlo.slice %a [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
  %1 = stablehlo.pad %0, %fill, low = [-1], high = [1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<7xf32>, tensor<f32>) -> tensor<7xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %2 : tensor<7xf32>
}

// Indices are clamped to the original bounds, and padding of indices is out of bounds.
// CHECK-LABEL: func @gather_scatter
func.func @gather_scatter(%a: tensor<7x3xf32>, %i: tensor<5xi32>) -> tensor<7x3xf32> {
  %0 = sdy.all_slice [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x3xf32>
  %1 = sdy.all_slice [{"y"}] %i out_sharding=<@mesh, [{"y"}]> : tensor<5xi32>
  // CHECK: %[[CLAMPED:.*]] = stablehlo.clamp
  // CHECK-NEXT: %[[ROWS:.*]] = "stablehlo.gather"(%{{.*}}, %[[CLAMPED]])
  // CHECK-SAME: slice_sizes = array<i64: 1, 3>
  // CHECK-SAME: (tensor<8x3xf32>, tensor<6xi32>) -> tensor<6x3xf32>
  %2 = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : (tensor<7x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
  // CHECK: stablehlo.constant dense<-1073741824> : tensor<i32>
  // CHECK: %[[MASKED:.*]] = stablehlo.select
  // CHECK-NEXT: "stablehlo.scatter"(%{{.*}}, %[[MASKED]], %[[ROWS]])
  // CHECK: (tensor<8x3xf32>, tensor<6xi32>, tensor<6x3xf32>) -> tensor<8x3xf32>
  %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %4 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<7x3xf32>, tensor<5xi32>, tensor<5x3xf32>) -> tensor<7x3xf32>
  %5 = sdy.all_gather [{"x"}, {}] %3 out_sharding=<@mesh, [{}, {}]> : tensor<7x3xf32>
  return %5 : tensor<7x3xf32>
}

// Loops carry padded values.
// CHECK-LABEL: func @loop
func.func @loop(%a: tensor<7xf32>, %n: tensor<i32>) -> tensor<7xf32> {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  // CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<8xf32>
  // CHECK: stablehlo.abs %{{.*}} : tensor<8xf32>
  %1:2 = stablehlo.while(%i = %n, %x = %0) : tensor<i32>, tensor<7xf32>
    attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}]>]>}
    cond {
    %2 = stablehlo.constant dense<3> : tensor<i32>
    %3 = stablehlo.compare LT, %i, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %4 = stablehlo.constant dense<1> : tensor<i32>
    %5 = stablehlo.add %i, %4 : tensor<i32>
    %6 = stablehlo.abs %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
    stablehlo.return %5, %6 : tensor<i32>, tensor<7xf32>
  }
  // CHECK: stablehlo.slice %{{.*}} [0:7]
  %7 = sdy.all_gather [{"x"}] %1#1 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %7 : tensor<7xf32>
}

// Inside of a manual computation, the other dimensions are padded as they are outside.
// CHECK-LABEL: func @manual
func.func @manual(%a: tensor<8x3xf32>) -> tensor<8x3xf32> {
  %0 = sdy.all_slice [{"x"}, {"y"}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x3xf32>
  // CHECK: sdy.manual_computation({{.*}}) {{.*}} manual_axes={"x"} (%arg1: tensor<2x4xf32>) {
  // CHECK-NEXT: stablehlo.abs %arg1 {{.*}} : tensor<2x4xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%b: tensor<2x3xf32>) {
    %2 = stablehlo.abs %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<2x3xf32>
    sdy.return %2 : tensor<2x3xf32>
  } : (tensor<8x3xf32>) -> tensor<8x3xf32>
  // CHECK: } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = sdy.all_gather [{"x"}, {"y"}] %1 out_sharding=<@mesh, [{}, {}]> : tensor<8x3xf32>
  return %3 : tensor<8x3xf32>
}

// A dimension that stays sharded, but in larger shards, is gathered first.
// CHECK-LABEL: func @larger_blocks
func.func @larger_blocks(%a: tensor<5xf32>) -> tensor<5xf32> {
  // CHECK: sdy.all_slice [{"y", "x"}] %{{.*}} : tensor<8xf32>
  // CHECK-NEXT: sdy.all_gather [{"x"}] %{{.*}} out_sharding=<@mesh, [{"y"}]> : tensor<8xf32>
  // CHECK-NEXT: sdy.all_gather [{"y"}] %{{.*}} out_sharding=<@mesh, [{}]> : tensor<8xf32>
  // CHECK-NEXT: stablehlo.slice %{{.*}} [0:5]
  // CHECK: stablehlo.pad %{{.*}} high = [1]
  // CHECK-NEXT: sdy.all_slice [{"y"}] %{{.*}} out_sharding=<@mesh, [{"y"}]> : tensor<6xf32>
  %0 = sdy.all_slice [{"y", "x"}] %a out_sharding=<@mesh, [{"y", "x"}]> : tensor<5xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{"y"}]> : tensor<5xf32>
  %2 = sdy.all_gather [{"y"}] %1 out_sharding=<@mesh, [{}]> : tensor<5xf32>
  return %2 : tensor<5xf32>
}
