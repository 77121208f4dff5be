// RUN: shard-opt %s --split-input-file --sdy-insert-explicit-reshards=enable-full-version=true | FileCheck %s
// RUN: not shard-opt %s --sdy-insert-explicit-reshards 2>&1 | FileCheck %s --check-prefix=PARTIAL

// PARTIAL: error: only the full version of this pass is there: give it the option enable-full-version=true

sdy.mesh @mesh = <["x"=2, "y"=2]>

// What agrees is left alone.
// CHECK-LABEL: func.func @compatible
// CHECK-NEXT: stablehlo.add
// CHECK-NEXT: return
func.func @compatible(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The sharding that most have wins.
// CHECK-LABEL: func.func @operand
// CHECK-NEXT: %[[B:.*]] = sdy.reshard %arg1 <@mesh, [{"x"}, {}]>
// CHECK-NEXT: stablehlo.add %arg0, %[[B]]
func.func @operand(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @result
// CHECK-NEXT: %[[R:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
// CHECK-NEXT: %[[S:.*]] = sdy.reshard %[[R]] <@mesh, [{}, {"x"}]>
// CHECK-NEXT: return %[[S]]
func.func @result(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @returned
// CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
// CHECK-NEXT: %[[S:.*]] = sdy.reshard %arg1 <@mesh, [{"y"}]>
// CHECK-NEXT: return %[[R]], %[[S]]
func.func @returned(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// A sharded contracted dimension leaves partial results.
// CHECK-LABEL: func.func @contracted
// CHECK: %[[R:.*]] = linalg.matmul
// CHECK-NEXT: %[[S:.*]] = sdy.all_reduce {"y"} %[[R]] out_sharding=<@mesh, [{"x"}, {}]>
// CHECK-NEXT: return %[[S]]
func.func @contracted(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = linalg.matmul {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Unless the result is declared partial, until somebody needs it whole.
// CHECK-LABEL: func.func @unreduced
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot_general
// CHECK-NEXT: %[[S:.*]] = sdy.all_reduce {"y"} %[[R]] out_sharding=<@mesh, [{"x"}, {}]>
// CHECK-NEXT: stablehlo.exponential %[[S]]
func.func @unreduced(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}], unreduced={"y"}>]>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// The reduction is what the op does.
// CHECK-LABEL: func.func @maximum
// CHECK: sdy.all_reduce max {"x"}
func.func @maximum(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// A product of all elements is reduced by no collective, so its operand is gathered.
// CHECK-LABEL: func.func @product
// CHECK: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: stablehlo.reduce(%[[A]]
// CHECK-NOT: all_reduce
// CHECK: return
func.func @product(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.multiply across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// What cannot be sharded at all goes to a dimension that every tensor has.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
// CHECK: %[[R:.*]] = linalg.softmax {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dimension(1) ins(%[[A]]
// CHECK-NEXT: sdy.reshard %[[R]] <@mesh, [{}, {"x"}]>
func.func @softmax(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
  %1 = linalg.softmax {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} dimension(1) ins(%a : tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
