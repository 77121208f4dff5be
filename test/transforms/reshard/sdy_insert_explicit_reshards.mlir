// RUN: shard-opt %s --split-input-file --sdy-insert-explicit-reshards=enable-full-version=true | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @reversed = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>

// Compatible shardings need no reshards.
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

// The most frequent sharding is chosen.
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

// A result that is declared partial stays partial until a user needs the entire value.
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

// The kind of the reduction is that of the op.
// CHECK-LABEL: func.func @maximum
// CHECK: sdy.all_reduce max {"x"}
func.func @maximum(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// No collective reduces a product of all elements, so its operand is gathered.
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

// An axis of a dimension that cannot be sharded moves to a dimension of all tensors.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
// CHECK: %[[R:.*]] = linalg.softmax {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dimension(1) ins(%[[A]]
// CHECK-NEXT: sdy.reshard %[[R]] <@mesh, [{}, {"x"}]>
func.func @softmax(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
  %1 = linalg.softmax {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} dimension(1) ins(%a : tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// A custom rule applies to propagation only.
// CHECK-LABEL: func.func @custom_rule
// CHECK-NEXT: stablehlo.custom_call @f(%arg0)
// CHECK-NEXT: return
func.func @custom_rule(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = stablehlo.custom_call @f(%a) {
    sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>,
    sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The most frequent order of devices is chosen.
// CHECK-LABEL: func.func @device_order
// CHECK-NEXT: %[[B:.*]] = sdy.reshard %arg1 <@reversed, [{"x"}]>
// CHECK-NEXT: stablehlo.add %arg0, %[[B]]
func.func @device_order(
    %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"x"}]>},
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"x"}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@reversed, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// All results take a sharding if the first one does.
// CHECK-LABEL: func.func @results
// CHECK: %[[S:.*]]:2 = "stablehlo.sort"
// CHECK: {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>]>}
// CHECK: sdy.reshard %[[S]]#0 <@mesh, [{}, {}]>
// CHECK: sdy.reshard %[[S]]#1 <@mesh, [{?}, {?}]>
func.func @results(%a: tensor<8x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x4xi32>, tensor<8x4xi32>) {
  %0:2 = "stablehlo.sort"(%a, %b) ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>, %e: tensor<i32>, %f: tensor<i32>):
    %1 = stablehlo.compare GT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi32>)
  return %0#0, %0#1 : tensor<8x4xi32>, tensor<8x4xi32>
}

// The operands and the carried values of a loop have the sharding of its result.
// CHECK-LABEL: func.func @loop
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}]>
// CHECK-NEXT: stablehlo.while(%{{.*}} = %[[A]])
// CHECK: do {
// CHECK-NEXT: %[[N:.*]] = stablehlo.constant
// CHECK-NEXT: %[[R:.*]] = sdy.reshard %[[N]] <@mesh, [{"y"}]>
// CHECK-NEXT: stablehlo.return %[[R]]
func.func @loop(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = stablehlo.while(%b = %a) : tensor<8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}
  cond {
    %1 = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// Shardings in a manual computation omit the manual axes.
// CHECK-LABEL: func.func @manual
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{"x", "y"}]>
// CHECK-NEXT: sdy.manual_computation(%[[A]])
// CHECK: %[[N:.*]] = stablehlo.negate
// CHECK-NEXT: %[[R:.*]] = sdy.reshard %[[N]] <@mesh, [{}]>
// CHECK-NEXT: sdy.return %[[R]]
func.func @manual(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    %1 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Values become partial by ops other than reshards.
// CHECK-LABEL: func.func @made_partial
// CHECK-NEXT: %[[R:.*]] = sdy.replicated_to_unreduced {"y"} %arg0 out_sharding=<@mesh, [{"x"}], unreduced={"y"}>
// CHECK-NEXT: %[[S:.*]] = sdy.sharded_to_unreduced [{"x"}] %[[R]] out_sharding=<@mesh, [{}], unreduced={"x", "y"}>
// CHECK-NEXT: return %[[S]]
func.func @made_partial(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x", "y"}>}) {
  %0 = sdy.reshard %a <@mesh, [{}], unreduced={"x", "y"}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// An op that reduces its operand needs no other reduction.
// CHECK-LABEL: func.func @reduced_already
// CHECK-NEXT: sdy.all_reduce
// CHECK-NEXT: return
func.func @reduced_already(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @three = <["s"=6, "t"=2]>

// An axis that does not fit one factor is distributed over several.
// CHECK-LABEL: func.func @overflow
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@three, [{"s":(1)2}, {"s":(2)3}]>
// CHECK-NEXT: %[[R:.*]] = stablehlo.reshape %[[A]] {sdy.sharding = #sdy.sharding_per_value<[<@three, [{"s"}]>]>}
// CHECK-NEXT: return %[[R]]
func.func @overflow(%a: tensor<2x9xf32> {sdy.sharding = #sdy.sharding<@three, [{}, {}]>}) -> (tensor<18xf32> {sdy.sharding = #sdy.sharding<@three, [{"s"}]>}) {
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@three, [{"s"}]>]>} : (tensor<2x9xf32>) -> tensor<18xf32>
  return %0 : tensor<18xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @device = <[], device_ids=[1]>

// CHECK-LABEL: func.func @one_device
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
// CHECK-NEXT: %[[B:.*]] = sdy.reshard %[[A]] <@device, []>
// CHECK-NEXT: %[[C:.*]]:2 = stablehlo.custom_call @f(%[[B]]) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>, <@device, []>]>}
// CHECK-NEXT: %[[D:.*]] = sdy.reshard %[[C]]#0 <@mesh, [{}]>
// CHECK-NEXT: %[[E:.*]] = sdy.reshard %[[C]]#1 <@mesh, [{}]>
// CHECK-NEXT: %[[F:.*]] = sdy.reshard %[[E]] <@mesh, [{"x"}]>
// CHECK-NEXT: stablehlo.add %[[F]], %arg0
// CHECK-NEXT: return %[[D]]
func.func @one_device(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>, <@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %1 = stablehlo.add %0#1, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0#0 : tensor<8xf32>
}
