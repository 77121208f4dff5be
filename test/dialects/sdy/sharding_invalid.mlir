// RUN: shard-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{'func.func' op argument 1: unknown mesh @other}}
func.func private @unknown_mesh(tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{}]>})

// -----

sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{'func.func' op result 0: dim 0: unknown axis "y": the mesh has "x"}}
func.func private @unknown_axis() -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})

// -----

sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{the sharding has 1 dimensions, but the tensor has 2}}
func.func private @wrong_rank(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})

// -----

sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{argument 0: attribute 'sdy.sharding' must be a #sdy.sharding, got a #sdy.sharding_per_value}}
func.func private @per_value_on_argument(tensor<8xf32> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>})

// -----

sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{argument 0: attribute 'sdy.sharding' must be a #sdy.sharding, got 3 : i8}}
func.func private @number_on_argument(tensor<8xf32> {sdy.sharding = 3 : i8})

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @one_on_operation(%a: tensor<8xf32>) {
  // expected-error @+1 {{'stablehlo.negate' op attribute 'sdy.sharding' must be a #sdy.sharding_per_value, got a #sdy.sharding}}
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @too_many(%a: tensor<8xf32>) {
  // expected-error @+1 {{2 shardings are given for 1 results}}
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{"y"}]>]>} : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @second_of_two(%a: tensor<8xf32>) {
  // expected-error @+1 {{result 1: dim 0: unknown axis "z"}}
  %0:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{"z"}]>]>} %a, %a : tensor<8xf32>, tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @without_results(%a: tensor<8xf32>) {
  // expected-error @+1 {{1 shardings are given for 0 results}}
  stablehlo.custom_call @effect(%a) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
// expected-error @+1 {{axis "x" is already used in dim 0}}
func.func private @in_two_dims(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {"x"}]>})

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
// expected-error @+1 {{replicated axes: axis "y" is already used in dim 0}}
func.func private @sharded_and_replicated(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}], replicated={"y"}>})

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
// expected-error @+1 {{unreduced axes: axis "x" is already used in replicated axes}}
func.func private @replicated_and_unreduced(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}], replicated={"x"}, unreduced={"x"}>})

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
// expected-error @+1 {{replicated axes have to be in the order of the mesh, {"x", "y"}}}
func.func private @replicated_out_of_order(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], replicated={"y", "x"}>})

// -----

sdy.mesh @mesh = <["x"=2, "y"=8]>
// expected-error @+1 {{unreduced axes have to be in the order of the mesh}}
func.func private @unreduced_out_of_order(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"y":(4)2, "y":(1)2}>})

// -----

sdy.mesh @mesh = <["x"=12]>
// expected-error @+1 {{"x":(1)2 and "x":(2)3 follow each other and have to be merged to "x":(1)6}}
func.func private @not_merged(tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "x":(2)3}]>})

// -----

sdy.mesh @mesh = <["x"=12]>
// expected-error @+1 {{pre-size times size is 8, which does not divide 12}}
func.func private @not_a_divisor(tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)4}]>})

// -----

sdy.mesh @mesh = <["x"=4]>
// expected-error @+1 {{sub-axis "x":(1)4 covers its entire axis and must be written as "x"}}
func.func private @whole_axis(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)4}]>})

// -----

sdy.mesh @mesh = <["x"=4]>
// expected-error @+1 {{has size 1, but a sub-axis must have at least size 2}}
func.func private @one_device(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)1}]>})

// -----

sdy.mesh @mesh = <["x"=4]>
// expected-error @+1 {{has pre-size 0, but a pre-size must be at least 1}}
func.func private @no_pre_size(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(0)2}]>})

// -----

sdy.mesh @mesh = <["x"=16]>
// expected-error @+1 {{axis "x":(2)4 overlaps "x":(4)4 in dim 0}}
func.func private @overlapping(tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(4)4}, {"x":(2)4}]>})

// -----

sdy.mesh @mesh = <["x"=16]>
// expected-error @+1 {{axis "x":(2)4 overlaps "x" in dim 0}}
func.func private @part_of_used(tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"x":(2)4}]>})

// -----

sdy.mesh @mesh = <["x"=16]>
// expected-error @+1 {{dim 1: priority p2 has no effect on a closed dimension without axes}}
func.func private @priority_of_nothing(tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1, {}p2]>})

// -----

sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{a sharding requires a tensor with a rank}}
func.func private @unranked(tensor<*xf32> {sdy.sharding = #sdy.sharding<@mesh, []>})

// -----

sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{the sharding of a value that is not a tensor has rank 0 and no replicated or unreduced axes}}
func.func private @number(i32 {sdy.sharding = #sdy.sharding<@mesh, [], replicated={"x"}>})

// -----

sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{a sharding of a tuple requires a tuple of size 1}}
func.func private @pair(tuple<tensor<8xf32>, tensor<8xf32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})

// -----

sdy.mesh @device = <[], device_ids=[3]>
// expected-error @+1 {{a sharding on one device (@device) has rank 0}}
func.func private @maximal_with_dims(tensor<8xf32> {sdy.sharding = #sdy.sharding<@device, [{}]>})

// -----

// expected-error @+1 {{mesh axis "a" is given 2 times}}
func.func private @inlined_mesh(tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "a"=2]>, [{"a"}]>})

// -----

sdy.mesh @mesh = <["x"=2]>
module @inner {
  // expected-error @+1 {{unknown mesh @mesh}}
  func.func private @mesh_of_outer_module(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @manual_axis_inside(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    // The same sharding is valid outside of the manual computation.
    // expected-error @+1 {{'stablehlo.negate' op result: axis "x" is already manual in an enclosing manual computation}}
    %1 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
