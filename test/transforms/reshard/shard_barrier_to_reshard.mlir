// RUN: shard-opt %s --shard-barrier-to-reshard | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @differs
// CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}]>
// CHECK-NEXT: return %[[R]]
func.func @differs(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Open and closed dimensions differ only in propagation.
// CHECK-LABEL: func.func @alike
// CHECK-NEXT: return %arg0
func.func @alike(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=BACKWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @only_before
// CHECK-NEXT: stablehlo.negate %arg0
func.func @only_before(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @only_after
// CHECK-NEXT: sdy.reshard %arg0 <@mesh, [{"x"}]>
func.func @only_after(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
