// RUN: shard-opt %s --split-input-file --verify-diagnostics

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @unsharded_operand(%a: tensor<16xf32>) {
  // expected-error @+1 {{'sdy.all_gather' op the operand must have a sharding}}
  %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @unsharded_all_to_all(%a: tensor<16x16xf32>) {
  // expected-error @+1 {{'sdy.all_to_all' op the operand must have a sharding}}
  %0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @other = <["x"=2, "y"=8]>
func.func @other_mesh(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}]>}) {
  // expected-error @+1 {{out_sharding is on the mesh <["x"=2, "y"=4]>, but the operand is on <["x"=2, "y"=8]>}}
  %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @wrong_out_sharding(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // expected-error @+1 {{out_sharding: dim 1: axis "y" is already used in dim 0}}
  %0 = sdy.all_slice [{"y"}, {}] %a out_sharding=<@mesh, [{"x", "y"}, {"y"}]> : tensor<16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @not_at_the_end(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) {
  // expected-error @+1 {{dim 0: "x" is not at the end of the operand's axes {"x", "y"}}}
  %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{"y"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @major_part(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  // expected-error @+1 {{"y":(1)2 is not at the end of the operand's axes}}
  %0 = sdy.all_gather [{"y":(1)2}] %a out_sharding=<@mesh, [{"y":(2)2}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @not_gathered(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) {
  // expected-error @+1 {{dim 0: out_sharding has the axes {}, but the operand's become {"x"}}}
  %0 = sdy.all_gather [{"y"}] %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @too_few_dims(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) {
  // expected-error @+1 {{axes are given for 1 dimensions, but the tensor has 2}}
  %0 = sdy.all_gather [{"y"}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @axes_not_merged(%a: tensor<16xf32>) {
  // expected-error @+1 {{have to be merged to "y"}}
  %0 = sdy.all_slice [{"y":(1)2, "y":(2)2}] %a out_sharding=<@mesh, [{"y"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @sliced_twice(%a: tensor<16x16xf32>) {
  // expected-error @+1 {{axis "x" is already used in axes of dim 0}}
  %0 = sdy.all_slice [{"x"}, {"x"}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @nothing_moves(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // expected-error @+1 {{an all-to-all must move at least one axis}}
  %0 = sdy.all_to_all [] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @no_such_dim(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // expected-error @+1 {{target dim 2 is out of range for a tensor of rank 2}}
  %0 = sdy.all_to_all [{"x"}: 0->2] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @dim_twice(%a: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>}) {
  // expected-error @+1 {{dim 2 occurs more than once as a source or target}}
  %0 = sdy.all_to_all [{"x"}: 0->2, {"y"}: 1->2] %a out_sharding=<@mesh, [{}, {}, {"x", "y"}]> : tensor<16x16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @descending(%a: tensor<4x4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}, {}]>}) {
  // expected-error @+1 {{source dims must be in ascending order, but 0 comes after 1}}
  %0 = sdy.all_to_all [{"y"}: 1->2, {"x"}: 0->3] %a out_sharding=<@mesh, [{}, {}, {"y"}, {"x"}]> : tensor<4x4x4x4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @other_dim_changes(%a: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {"y"}]>}) {
  // expected-error @+1 {{dim 2: out_sharding has the axes {}, but the operand's become {"y"}}}
  %0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}, {}]> : tensor<4x4x4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @more_blocks(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{dim 0: {"y"} makes 4 shards, but the operand's {"x"} makes 2}}
  %0 = sdy.collective_permute %a out_sharding=<@mesh, [{"y"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @other = <["x"=4, "y"=2]>
func.func @permute_to_other_axes(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{has different axes}}
  %0 = sdy.collective_permute %a out_sharding=<@other, [{"y"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @twin = <["x"=2, "y"=4]>
func.func @permute_to_twin(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{the meshes must differ in the order of devices, not only in name}}
  %0 = sdy.collective_permute %a out_sharding=<@twin, [{"x"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @reduced_and_sharded(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}]>}) {
  // expected-error @+1 {{reduction axis "y" overlaps dim 0 of the operand}}
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"y":(1)2}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @reduced_and_replicated(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], replicated={"y"}>}) {
  // expected-error @+1 {{reduction axis "y":(2)2 overlaps replicated axes of the operand}}
  %0 = sdy.all_reduce {"y":(2)2} %a out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @still_unreduced(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>}) {
  // expected-error @+1 {{reduction axis "y" overlaps the unreduced axes of out_sharding}}
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @reduced_in_any_order(%a: tensor<16xf32>) {
  // expected-error @+1 {{reduction axes have to be in the order of the mesh, {"x", "y"}}}
  %0 = sdy.all_reduce {"y", "x"} %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @all_reduce_moves(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{out_sharding must shard like the operand}}
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @reduced_by_other_op(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced=max{"y"}>}) {
  // expected-error @+1 {{axis "y" is unreduced by max, but reduced by min}}
  %0 = sdy.all_reduce min {"y"} %a out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @all_reduce_makes_unreduced(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{axis "y" is unreduced in a result but not in an operand}}
  %0 = sdy.all_reduce {} %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @scattered_elsewhere(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // expected-error @+1 {{dim 0: out_sharding has the axes {"x"}, but the operand's become {"x", "y"}}}
  %0 = sdy.reduce_scatter [{"y"}, {}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<16x16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @scatter_reduces_other_op(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced=max{"y"}>}) {
  // expected-error @+1 {{axis "y" is unreduced by max, but reduced by sum}}
  %0 = sdy.reduce_scatter [{"y"}] %a out_sharding=<@mesh, [{"x", "y"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @unknown_reduction(%a: tensor<16xf32>) {
  // expected-error @+1 {{attribute 'reduction_op' must be 0 (sum), 1 (max) or 2 (min), got 9}}
  %0 = "sdy.reduce_scatter"(%a) {reduce_scatter_axes = #sdy<list_of_axis_ref_lists[{"x"}]>, reduction_op = 9 : i32, out_sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @not_added_to_unreduced(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y":(1)2}>}) {
  // expected-error @+1 {{out_sharding has the unreduced axes {"x"}, but the operand's become {"x", "y":(1)2}}}
  %0 = sdy.sharded_to_unreduced [{"x"}] %a out_sharding=<@mesh, [{}], unreduced={"x"}> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @unreduced_by_min(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{out_sharding is unreduced by min, but axes can become unreduced only by sum}}
  %0 = sdy.sharded_to_unreduced [{"x"}] %a out_sharding=<@mesh, [{}], unreduced=min{"x"}> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @not_replicated(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{axis "x" overlaps dim 0 of the operand, but must be replicated there}}
  %0 = sdy.replicated_to_unreduced {"x"} %a out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @already_unreduced(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>}) {
  // expected-error @+1 {{axis "y" overlaps unreduced axes of the operand}}
  %0 = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @no_axis(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{at least one axis that becomes unreduced must be given}}
  %0 = sdy.replicated_to_unreduced {} %a out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @dims_change(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{out_sharding must have the operand's dimension shardings}}
  %0 = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{}], unreduced={"y"}> : tensor<16xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @token(%a: !stablehlo.token {sdy.sharding = #sdy.sharding<@mesh, []>}) {
  // expected-error @+1 {{'sdy.all_reduce' op requires shaped types}}
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, []> : !stablehlo.token
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @manual_axis(%a: tensor<16xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<8xf32>) {
    // expected-error @+1 {{out_sharding: axis "x" is already manual in an enclosing manual computation}}
    %1 = sdy.all_slice [{"x"}] %b out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// An invalid sharding of an operand is reported once, at its own location.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// expected-error @+1 {{argument 0: dim 0: unknown axis "w"}}
func.func @operand_is_wrong(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"w"}]>}) {
  %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  %1 = sdy.reshard %a <@mesh, [{"x"}], unreduced={"y"}> : tensor<16xf32>
  return
}
