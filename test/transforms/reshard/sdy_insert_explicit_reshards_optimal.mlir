// RUN: shard-opt %s --sdy-insert-explicit-reshards="enable-full-version=true planner=optimal" | FileCheck %s
// RUN: shard-opt %s --sdy-insert-explicit-reshards=enable-full-version=true | FileCheck %s --check-prefix=SHARDY
// RUN: shard-opt %s --sdy-insert-explicit-reshards="enable-full-version=true planner=optimal" --sdy-reshard-to-collectives --canonicalize | FileCheck %s --check-prefix=COLLECTIVES

sdy.mesh @mesh = <["x"=8]>
sdy.mesh @grid = <["x"=2, "y"=2]>
sdy.mesh @four = <["x"=4]>

// Shardy's choice is kept if it costs the same.
// CHECK-LABEL: func.func @operand
// CHECK-NEXT: %[[B:.*]] = sdy.reshard %arg1 <@mesh, [{"x"}, {}]>
// CHECK-NEXT: stablehlo.add %arg0, %[[B]]
// SHARDY-LABEL: func.func @operand
// SHARDY-NEXT: %[[B:.*]] = sdy.reshard %arg1 <@mesh, [{"x"}, {}]>
// SHARDY-NEXT: stablehlo.add %arg0, %[[B]]
func.func @operand(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The result is sharded along the contracted axis, so partial results are scattered.
// CHECK-LABEL: func.func @scattered
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot %arg0, %arg1
// CHECK-NEXT: %[[S:.*]] = sdy.all_reduce {"x"} %[[R]] out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: %[[T:.*]] = sdy.reshard %[[S]] <@mesh, [{"x"}, {}]>
// CHECK-NEXT: return %[[T]]
// COLLECTIVES-LABEL: func.func @scattered
// COLLECTIVES-NEXT: %[[R:.*]] = stablehlo.dot %arg0, %arg1
// COLLECTIVES-NEXT: %[[S:.*]] = sdy.reduce_scatter [{"x"}, {}] %[[R]]
// COLLECTIVES-NEXT: return %[[S]]
func.func @scattered(
    %a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// For a short contraction, resharding the operands moves fewer bytes.
// CHECK-LABEL: func.func @short_contraction
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
// CHECK-NEXT: %[[B:.*]] = sdy.reshard %arg1 <@mesh, [{}, {}]>
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot %[[A]], %[[B]]
// CHECK-NEXT: return %[[R]]
// SHARDY-LABEL: func.func @short_contraction
// SHARDY-NEXT: stablehlo.dot %arg0, %arg1
// SHARDY-NEXT: sdy.all_reduce
func.func @short_contraction(
    %a: tensor<1024x640xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<640x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<1024x640xf32>, tensor<640x1024xf32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}

// A small operand is gathered rather than a large result.
// CHECK-LABEL: func.func @outer_product
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot_general %[[A]], %arg1
// CHECK-NEXT: return %[[R]]
// SHARDY-LABEL: func.func @outer_product
// SHARDY-NEXT: %[[R:.*]] = stablehlo.dot_general %arg0, %arg1
// SHARDY-NEXT: sdy.reshard %[[R]] <@mesh, [{}, {}]>
func.func @outer_product(
    %a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<32xf32>) -> tensor<64x32xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [] x [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<64xf32>, tensor<32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// Gathering both operands takes no longer than reducing the result, and moves as much, but replicates the computation.
// CHECK-LABEL: func.func @not_everywhere
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot %arg0, %arg1
// CHECK-NEXT: sdy.all_reduce {"x"} %[[R]]
func.func @not_everywhere(
    %a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<64x64xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// Every user needs the product in another sharding than the declared one, so the product takes that sharding.
// CHECK-LABEL: func.func @users
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot %arg0, %arg1
// CHECK-NEXT: %[[S:.*]] = sdy.all_reduce {"x"} %[[R]] out_sharding=<@grid, [{}, {}]>
// CHECK-NEXT: %[[T:.*]] = sdy.reshard %[[S]] <@grid, [{"x"}, {}]>
// CHECK-NEXT: %[[U:.*]] = stablehlo.add %[[T]], %arg2
// CHECK-NEXT: %[[V:.*]] = stablehlo.multiply %[[T]], %arg2
// CHECK-NEXT: return %[[U]], %[[V]]
// SHARDY-LABEL: func.func @users
// SHARDY-NEXT: %[[R:.*]] = stablehlo.dot %arg0, %arg1
// SHARDY-NEXT: %[[S:.*]] = sdy.all_reduce {"x"} %[[R]] out_sharding=<@grid, [{}, {}]>
// SHARDY-NEXT: %[[T:.*]] = sdy.reshard %[[S]] <@grid, [{}, {"x"}]>
// SHARDY-NEXT: sdy.reshard %[[T]] <@grid, [{"x"}, {}]>
func.func @users(
    %a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{}, {"x"}]>},
    %b: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {}]>},
    %c: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {}]>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {}]>}, tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {}]>}) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}, {"x"}]>]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.add %0, %c {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}, {}]>]>} : tensor<64x64xf32>
  %2 = stablehlo.multiply %0, %c {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}, {}]>]>} : tensor<64x64xf32>
  return %1, %2 : tensor<64x64xf32>, tensor<64x64xf32>
}

// The sharding of a returned value reaches its operands, the smallest of which is resharded.
// CHECK-LABEL: func.func @from_the_end
// CHECK-NEXT: %[[R:.*]] = stablehlo.negate %arg0
// CHECK-NEXT: %[[S:.*]] = sdy.reshard %[[R]] <@grid, [{"y"}]>
// CHECK-NEXT: %[[T:.*]] = stablehlo.broadcast_in_dim %[[S]], dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}, {"y"}]>]>}
// CHECK-NEXT: return %[[T]]
// SHARDY-LABEL: func.func @from_the_end
// SHARDY-NEXT: stablehlo.negate
// SHARDY-NEXT: %[[T:.*]] = stablehlo.broadcast_in_dim
// SHARDY-NEXT: sdy.reshard %[[T]] <@grid, [{}, {"y"}]>
func.func @from_the_end(%a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}]>})
    -> (tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{}, {"y"}]>}) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"x"}]>]>} : tensor<64xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}, {"x"}]>]>} : (tensor<64xf32>) -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}

// For partial tensors, costs are not compared.
// CHECK-LABEL: func.func @unreduced
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}, {}], unreduced={"x"}>]>}
// CHECK-NEXT: return %[[R]]
func.func @unreduced(
    %a: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{}, {"x"}]>},
    %b: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {}]>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@grid, [{}, {}], unreduced={"x"}>}) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}, {}], unreduced={"x"}>]>} : (tensor<64x8xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// Partial sums that are added are reduced together: the small contractions leave theirs partial, too. One alone gathers
// its operands, which are smaller than its result.
// CHECK-LABEL: func.func @summands
// CHECK-NEXT: stablehlo.dot_general %arg0, %arg3
// CHECK-NEXT: sdy.all_reduce {"x"}
// CHECK-NEXT: stablehlo.dot_general %arg1, %arg4
// CHECK-NEXT: sdy.all_reduce {"x"}
// CHECK-NEXT: stablehlo.add
// CHECK-NEXT: stablehlo.dot_general %arg2, %arg5
// CHECK-NEXT: sdy.all_reduce {"x"}
// CHECK-LABEL: func.func @one_summand
// CHECK-NEXT: sdy.reshard %arg0 <@four, [{}, {}]>
// CHECK-NEXT: sdy.reshard %arg1 <@four, [{}, {}]>
// CHECK-NEXT: stablehlo.dot_general
// CHECK-NEXT: return
func.func @summands(%a: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@four, [{}, {"x"}]>},
               %b: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@four, [{}, {"x"}]>},
               %c: tensor<32x512xf32> {sdy.sharding = #sdy.sharding<@four, [{}, {"x"}]>},
               %u: tensor<16x256xf32> {sdy.sharding = #sdy.sharding<@four, [{"x"}, {}]>},
               %v: tensor<16x256xf32> {sdy.sharding = #sdy.sharding<@four, [{"x"}, {}]>},
               %w: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@four, [{"x"}, {}]>}) -> tensor<32x256xf32> {
  %0 = stablehlo.dot_general %a, %u, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x256xf32>) -> tensor<32x256xf32>
  %1 = stablehlo.dot_general %b, %v, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x256xf32>) -> tensor<32x256xf32>
  %2 = stablehlo.add %0, %1 : tensor<32x256xf32>
  %3 = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0] : (tensor<32x512xf32>, tensor<512x256xf32>) -> tensor<32x256xf32>
  %4 = stablehlo.add %2, %3 : tensor<32x256xf32>
  return %4 : tensor<32x256xf32>
}
func.func @one_summand(%a: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@four, [{}, {"x"}]>},
                 %u: tensor<16x256xf32> {sdy.sharding = #sdy.sharding<@four, [{"x"}, {}]>}) -> tensor<32x256xf32> {
  %0 = stablehlo.dot_general %a, %u, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x256xf32>) -> tensor<32x256xf32>
  return %0 : tensor<32x256xf32>
}

// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return %arg0
// SHARDY-LABEL: func.func @unused
// SHARDY: sdy.reshard
func.func @unused(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = sdy.reshard %a <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<8x8xf32>
  return %a : tensor<8x8xf32>
}

sdy.mesh @rows = <["s"=4, "h"=2]>

// A reshape splits 24 into 3 x 8, and "s" does not divide 3: only "s" is gathered, while "h" stays.
// CHECK-LABEL: func.func @split
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@rows, [{}, {}, {"h"}]>
// CHECK-NEXT: %[[R:.*]] = stablehlo.reshape %[[A]]
// CHECK-NEXT: return %[[R]]
func.func @split(%a: tensor<2x24x4xf32> {sdy.sharding = #sdy.sharding<@rows, [{}, {"s"}, {"h"}]>})
    -> (tensor<2x3x8x4xf32> {sdy.sharding = #sdy.sharding<@rows, [{}, {}, {}, {"h"}]>}) {
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@rows, [{}, {}, {}, {"h"}]>]>} : (tensor<2x24x4xf32>) -> tensor<2x3x8x4xf32>
  return %0 : tensor<2x3x8x4xf32>
}
