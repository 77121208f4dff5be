// RUN: shard-opt %s --split-input-file --verify-diagnostics

sdy.mesh @mesh = <["x"=2]>
func.func @wrong_rank(%a: tensor<8x8xf32>) {
  // expected-error @+1 {{'sdy.sharding_constraint' op the sharding has 1 dimensions, but the tensor has 2}}
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8x8xf32>
  return
}

// -----

func.func @unknown_mesh(%a: tensor<8xf32>) {
  // expected-error @+1 {{'sdy.reshard' op unknown mesh @mesh}}
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @changed_type(%a: tensor<8xf32>) {
  // expected-error @+1 {{must have a result of its operand's type tensor<8xf32>, got tensor<4xf32>}}
  %0 = "sdy.reshard"(%a) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @per_value(%a: tensor<8xf32>) {
  // expected-error @+1 {{'sdy.reshard' op attribute 'sharding' must be a #sdy.sharding, got a #sdy.sharding_per_value}}
  %0 = "sdy.reshard"(%a) {sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @two_operands(%a: tensor<8xf32>) {
  // expected-error @+1 {{'sdy.sharding_constraint' op must have one operand, got 2}}
  %0 = "sdy.sharding_constraint"(%a, %a) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @introduces_max(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{axis "y" becomes unreduced by max, but this op allows only sum}}
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}], unreduced=max{"y"}> : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @changes_reduction(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=min{"y"}>}) {
  // The sharding of the operand is found through barriers.
  %0 = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<8xf32>
  // expected-error @+1 {{axis "y" stays unreduced, but its reduction changes from min to sum}}
  %1 = sdy.reshard %0 <@mesh, [{"x"}], unreduced={"y"}> : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @manual_axis(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    // expected-error @+1 {{'sdy.reshard' op axis "x" is already manual in an enclosing manual computation}}
    %1 = sdy.reshard %b <@mesh, [{"y"}], replicated={"x"}> : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
