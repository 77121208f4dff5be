// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @rule_kind(%a: tensor<8xf32>) {
  // expected-error @+1 {{'stablehlo.negate' op attribute 'sdy.sharding_rule' must be a #sdy.op_sharding_rule, got "elementwise"}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = "elementwise"} : tensor<8xf32>
  return
}

// -----

func.func @too_many_operands(%a: tensor<8xf32>) {
  // expected-error @+1 {{the rule maps 2 operands, but the op has 1}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=8}>} : tensor<8xf32>
  return
}

// -----

func.func @wrong_rank(%a: tensor<8x8xf32>) {
  // expected-error @+1 {{operand: the mapping [i] has 1 dimensions, but the tensor has 2}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i, i]) {i=8}>} : tensor<8x8xf32>
  return
}

// -----

func.func @dynamic(%a: tensor<8x?xf32>) {
  // expected-error @+1 {{a rule requires tensors with a static shape, but dim 1 is dynamic}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>} : tensor<8x?xf32>
  return
}

// -----

func.func @tuple(%a: tensor<8xf32>) {
  // expected-error @+1 {{result: a rule requires tensors with a static shape, but this is a value that is not a tensor}}
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : (tensor<8xf32>) -> tuple<tensor<8xf32>>
  return
}

// -----

func.func @unknown_factor(%a: tensor<8xf32>) {
  // expected-error @+1 {{result: dim 0: unknown factor j: the rule has 1 factors}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([j]) {i=8}>} : tensor<8xf32>
  return
}

// -----

func.func @unused_factor(%a: tensor<8xf32>) {
  // expected-error @+1 {{factor j=4 does not occur in any operand or result}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8, j=4}>} : tensor<8xf32>
  return
}

// -----

func.func @factor_twice(%a: tensor<8x8xf32>) {
  // expected-error @+1 {{dim 1: factor i is already in dim 0 of this tensor}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, i])->([i, i]) {i=8}>} : tensor<8x8xf32>
  return
}

// -----

func.func @factor_of_one(%a: tensor<8xf32>) {
  // expected-error @+1 {{factor j of size 1 cannot be one of several factors of a dimension}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([ij])->([ij]) {i=8, j=1}>} : tensor<8xf32>
  return
}

// -----

func.func @two_types(%a: tensor<8x4xf32>) {
  // expected-error @+1 {{factor j is both a reduction and a permutation factor}}
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={j} permutation={i, j}>} : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduced_in_result(%a: tensor<8xf32>) {
  // expected-error @+1 {{reduction factor i must not occur in result}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8} reduction={i}>} : tensor<8xf32>
  return
}

// -----

func.func @descending(%a: tensor<8x4xf32>) {
  // expected-error @+1 {{blocked_propagation factors: must be in ascending order: i, j}}
  %0 = stablehlo.negate %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} blocked_propagation={j, i}>} : tensor<8x4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @edges_kind(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{attribute 'sdy.propagation_edges' must be a #sdy.propagation_edges, got [1]}}
  %0 = stablehlo.negate %a {sdy.propagation_edges = [1]} : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @step_twice(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{propagation step 4 is given twice}}
  %0 = stablehlo.negate %a {sdy.propagation_edges = #sdy.propagation_edges<[{step-4 = [{"x" = operand-0 -> [result-0]}]}, {step-4 = [{"x" = operand-0 -> [result-0]}]}]>} : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @to_itself(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{propagation step 0: axis "x" propagates from result-0 to itself}}
  %0 = stablehlo.negate %a {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = result-0 -> [operand-0, result-0]}]}]>} : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @unknown_value(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{unknown value result-1: the op has 1 results}}
  %0 = stablehlo.negate %a {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-1]}]}]>} : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @unknown_axis(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{unknown axis "y"}}
  %0 = stablehlo.negate %a {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"y" = operand-0 -> [result-0]}]}]>} : tensor<8xf32>
  return
}

// -----

func.func @nothing_sharded(%a: tensor<8xf32>) {
  // expected-error @+1 {{propagation edges must be between values with shardings, but no value has a sharding}}
  %0 = stablehlo.negate %a {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>} : tensor<8xf32>
  return
}

// -----

func.func @no_array(%a: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'sdy.result_propagation_edges' must be an array of #sdy.propagation_edges, got true}}
  %0 = stablehlo.negate %a {sdy.result_propagation_edges = true} : tensor<8xf32>
  return
}

// -----

func.func @array_of_other(%a: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'sdy.block_arg_propagation_edges' must be a #sdy.propagation_edges, got 1 : i64}}
  %0 = stablehlo.negate %a {sdy.block_arg_propagation_edges = [#sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>, 1]} : tensor<8xf32>
  return
}
