// RUN: shard-opt %s --split-input-file --verify-diagnostics

sdy.mesh @mesh = <["x"=2]>
func.func @wrong_sharding(%a: tensor<8xf32>) {
  // expected-error @+1 {{'sdy.data_flow_edge' op the sharding has 2 dimensions, but the tensor has 1}}
  %0 = sdy.data_flow_edge %a sharding=<@mesh, [{"x"}, {}]> : tensor<8xf32>
  return
}

// -----

func.func @other_user(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{must be the only user of its operand, which has 2 uses}}
  %0 = sdy.data_flow_edge %a : tensor<8xf32>
  return %a : tensor<8xf32>
}

// -----

func.func @dynamic(%a: tensor<?xf32>) {
  // expected-error @+1 {{must have a result of static shape, got tensor<?xf32>}}
  %0 = sdy.data_flow_edge %a : tensor<?xf32>
  return
}

// -----

func.func @token(%a: !stablehlo.token) {
  // expected-error @+1 {{requires shaped types (tensors, vectors, memrefs), got !stablehlo.token}}
  %0 = sdy.data_flow_edge %a : !stablehlo.token
  return
}

// -----

func.func @of_barrier(%a: tensor<8xf32>) {
  %0 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<8xf32>
  // expected-error @+1 {{has an operand that is defined by 'sdy.propagation_barrier'}}
  %1 = sdy.data_flow_edge %0 : tensor<8xf32>
  return
}

// -----

func.func @sharding_kind(%a: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'sharding' must be a #sdy.sharding, got "x"}}
  %0 = "sdy.data_flow_edge"(%a) {sharding = "x"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @of_other_result(%a: tensor<8xf32>) {
  %0 = stablehlo.negate %a : tensor<8xf32>
  // expected-error @+1 {{'sdy.func_data_flow_edge' op has a result of 'stablehlo.negate' as operand}}
  %1 = sdy.func_data_flow_edge %0 : tensor<8xf32>
  return
}

// -----

func.func @of_other_argument(%a: tensor<8xf32>) {
  %0 = sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {
    // expected-error @+1 {{has an argument of 'sdy.named_computation' as operand}}
    %1 = sdy.func_data_flow_edge %b : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @func_edge_not_alone(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{must be the only user of its operand}}
  %0 = sdy.func_data_flow_edge %a : tensor<8xf32>
  return %a : tensor<8xf32>
}

// -----

func.func @dynamic_func_edge(%a: tensor<8x?xf32>) {
  // expected-error @+1 {{must have a result of static shape}}
  %0 = sdy.func_data_flow_edge %a : tensor<8x?xf32>
  return
}
