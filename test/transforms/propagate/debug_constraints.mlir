// The debug attributes of constraints that are applied to their operands, before propagation.
//
// RUN: shard-opt %s --sdy-apply-sharding-constraints=debug-sharding-origins=true | FileCheck %s --check-prefix=ORIGINS
// RUN: shard-opt %s --sdy-apply-sharding-constraints=debug-propagation-edge-sharding=true | FileCheck %s --check-prefix=EDGES
// RUN: shard-opt %s --sdy-apply-sharding-constraints | FileCheck %s --check-prefix=NONE

sdy.mesh @mesh = <["x"=2, "y"=2]>

// ORIGINS-LABEL: @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>, sdy.sharding_origins = {y = "mc_0_input: 0"}})
// EDGES-LABEL:   @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
// NONE-LABEL:    @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  // A constraint without axes counts as a step, too.
  // ORIGINS-NEXT: sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> {sdy.sharding_origin_name = "constraint_0"} :
  // EDGES-NEXT:   sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> :
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  // ORIGINS-NEXT: stablehlo.negate {{.*}} sdy.sharding_origins = [{x = "constraint_1"}]} :
  // EDGES-NEXT:   stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} :
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  // ORIGINS-NEXT: sdy.sharding_constraint %1 {{.*}} {sdy.sharding_origin_name = "constraint_1", sdy.sharding_origins = {x = "self"}} :
  // EDGES-NEXT:   sdy.sharding_constraint %1 {{.*}} {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"x" = result-0 -> [operand-0]}]}]>} :
  %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  // An open constraint is not applied.
  // ORIGINS-NEXT: stablehlo.abs %arg0 : tensor<8x8xf32>
  // EDGES-NEXT:   stablehlo.abs %arg0 : tensor<8x8xf32>
  %3 = stablehlo.abs %arg0 : tensor<8x8xf32>
  // ORIGINS-NEXT: sdy.sharding_constraint %3 <@mesh, [{"x", ?}, {}]> {sdy.sharding_origin_name = "constraint_2", sdy.sharding_origins = {x = "self"}} :
  // EDGES-NEXT:   sdy.sharding_constraint %3 <@mesh, [{"x", ?}, {}]> :
  %4 = sdy.sharding_constraint %3 <@mesh, [{"x", ?}, {}]> : tensor<8x8xf32>
  // Without data-flow edges, the attributes of its values are on the computation.
  // ORIGINS:      } {sdy.block_arg_sharding_origins = [{y = "self"}], sdy.sharding_origin_name = "mc_0", sdy.sharding_origins = [{y = "self"}]} :
  // EDGES:        manual_axes={"y"}
  %5 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"y"} (%arg2: tensor<4x8xf32>) {
    sdy.return %arg2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2, %4, %5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
// NONE-NOT: origin
// EDGES-NOT: origin
// ORIGINS-NOT: propagation_edges
