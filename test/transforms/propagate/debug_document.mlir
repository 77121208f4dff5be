// The debug attributes that docs/debugging.md shows.
//
// RUN: shard-opt %examples/layer_stablehlo.mlir --sdy-user-priority-propagate=debug-sharding-origins=true | FileCheck %s --check-prefix=ORIGINS
// RUN: shard-opt %examples/layer_stablehlo.mlir --sdy-user-priority-propagate=debug-propagation-edge-sharding=true | FileCheck %s --check-prefix=EDGES

// ORIGINS-LABEL: @layer
// ORIGINS-SAME: sdy.sharding_origins = {data = "self"}}, %arg1
// ORIGINS-SAME: sdy.sharding_origins = {model = "constraint_0"}}) ->
// ORIGINS:      sdy.sharding_constraint %0 <@mesh, [{"data", ?}, {"model"}]> {sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {data = "input: 0", model = "self"}} :
// ORIGINS-NOT:  propagation_edges

// EDGES-LABEL: @layer
// EDGES:      stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"data" = operand-0 -> [result-0]}, {"model" = result-0 -> [operand-1]}]}]>, sdy.sharding
// EDGES-NEXT: sdy.sharding_constraint {{.*}}<[{step-0 = [{"model" = result-0 -> [operand-0]}]},
// EDGES-NOT:  origin
