// RUN: shard-opt %s --sdy-insert-explicit-reshards | FileCheck %s

// Without the option, only reshards that are required, or that reduce the cost, are inserted.

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @conflict
// CHECK-NEXT: stablehlo.add %arg0, %arg1
// CHECK-NEXT: return
func.func @conflict(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @dot
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}
// CHECK-NEXT: %[[S:.*]] = sdy.reshard %[[R]] <@mesh, [{}, {"x"}]>
// CHECK-NEXT: return %[[S]]
func.func @dot(
    %a: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x8xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @dot_with_a_large_result
// CHECK-NEXT: stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
// CHECK-NEXT: return
func.func @dot_with_a_large_result(
    %a: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<64x8xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<64x32xf32>, tensor<32x8xf32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// CHECK-LABEL: func.func @concatenate
// CHECK-NEXT: %[[B:.*]] = sdy.reshard %arg1 <@mesh, [{}, {"x"}]>
// CHECK-NEXT: stablehlo.concatenate %arg0, %[[B]]
func.func @concatenate(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<16x8xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// The operand after the barrier has the sharding of the result, and the operand before it does not.
// CHECK-LABEL: func.func @concatenate_behind_a_barrier
// CHECK-NOT: sdy.reshard
// CHECK: stablehlo.concatenate %arg0, %0, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
func.func @concatenate_behind_a_barrier(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<8x8xf32>)
    -> tensor<8x16xf32> {
  %0 = sdy.propagation_barrier %b allowed_direction=BACKWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.concatenate %a, %0, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @concatenate_resharded_by_a_barrier
// CHECK: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
// CHECK: %[[B:.*]] = sdy.reshard %0 <@mesh, [{"x"}, {}]>
// CHECK: stablehlo.concatenate %[[A]], %[[B]]
func.func @concatenate_resharded_by_a_barrier(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> tensor<8x16xf32> {
  %0 = sdy.propagation_barrier %b allowed_direction=BACKWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.concatenate %a, %0, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// All calls of a function share its shardings.
// CHECK-LABEL: func.func @caller
// CHECK-NEXT: %[[A:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}]>
// CHECK-NEXT: call @callee(%[[A]])
// CHECK-NEXT: return
func.func @caller(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = call @callee(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @callee(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// Partial values are reduced if the next op needs entire values, or along axes that a result does not declare.
// CHECK-LABEL: func.func @unreduced
// CHECK-NEXT: %[[D:.*]] = stablehlo.dot
// CHECK-NEXT: %[[Y:.*]] = sdy.all_reduce {"y"} %[[D]] out_sharding=<@mesh, [{}, {}], unreduced={"x"}>
// CHECK-NEXT: %[[N:.*]] = stablehlo.negate %[[Y]]
// CHECK-NEXT: %[[X:.*]] = sdy.all_reduce {"x"} %[[N]] out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: return %[[X]]
func.func @unreduced(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x"}>]>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x"}>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Equal constants have separate shardings: only the one with another sharding is resharded for the call.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.constant dense
// CHECK-NEXT: %[[R:.*]] = sdy.reshard %[[WHOLE]] <@mesh, [{"y"}]>
// CHECK-NEXT: %[[SHARDED:.*]] = sdy.constant {
// CHECK-NEXT: call @callee(%[[R]])
// CHECK-NEXT: call @callee(%[[SHARDED]])
func.func @constants() {
  %0 = sdy.constant dense<0.0> : tensor<8xf32>
  %1 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} dense<0.0> : tensor<8xf32>
  %2 = call @callee(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @callee(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return
}
