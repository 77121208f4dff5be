// RUN: shard-opt %s --split-input-file --verify-diagnostics --spmdize

sdy.mesh @mesh = <["x"=2]>

// expected-error@+1 {{argument 0 of the function cannot be partitioned: dimension 0 of size 7 is sharded in 2 blocks, which are not of one size: blocks of different sizes are not supported yet}}
func.func @uneven_argument(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @uneven_result(%a: tensor<7xf32>) {
  // expected-error@+1 {{'arith.negf' cannot be partitioned: dimension 0 of size 7 is sharded in 2 blocks}}
  %0 = arith.negf %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @unknown_op(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: index) {
  // expected-error@+1 {{'tensor.extract' cannot be partitioned yet: operand 0 is sharded, and the op has no partition rule}}
  %0 = tensor.extract %a[%i] : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @unknown_op_result(%f: f32) {
  // expected-error@+1 {{'tensor.from_elements' cannot be partitioned yet: result 0 is sharded, and the op has no partition rule}}
  %0 = tensor.from_elements %f, %f {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<2xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @captured(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: index, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%b : tensor<8xf32>) {
    ^bb0(%o: f32):
      // expected-error@+1 {{'linalg.generic' cannot be partitioned yet: inside its region it uses a sharded tensor}}
      %1 = tensor.extract %a[%i] : tensor<8xf32>
      linalg.yield %1 : f32
    } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @region(%a: tensor<8xf32>, %p: i1) -> tensor<8xf32> {
  %0 = scf.if %p -> tensor<8xf32> {
    // expected-error@+1 {{'scf.if' cannot be partitioned yet: inside its region there is a sharded tensor}}
    %1 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  } else {
    scf.yield %a : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @becomes_unreduced(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'sdy.reshard' cannot be partitioned: the target is unreduced along grid axes [0], along which the source holds whole values}}
  %0 = sdy.reshard %a <@mesh, [{}], unreduced={"x"}> : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// expected-error@+1 {{a function cannot return partial values: its result has unreduced axes}}
func.func @returns_unreduced(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) {
  return %a : tensor<8xf32>
}

// -----

// expected-error@+1 {{shardings on several meshes cannot be partitioned together yet}}
module @two_meshes {
  sdy.mesh @one = <["x"=2]>
  sdy.mesh @other = <["x"=4]>
  func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}]>}, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}]>}) {
    return
  }
}

// -----

// expected-error@+1 {{the devices of mesh @mesh are permuted, and a grid numbers its devices in order}}
module @permuted {
  sdy.mesh @mesh = <["x"=4], device_ids=[1, 0, 2, 3]>
  func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    return
  }
}

// -----

// expected-error@+1 {{sub-axes cut axis "x" of mesh @mesh at 2 and at 3, and no grid has axes for both}}
module @cuts {
  sdy.mesh @mesh = <["x"=6]>
  func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>}, %b: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}]>}) {
    return
  }
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @manual(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'sdy.manual_computation' cannot be partitioned yet}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @random(%low: tensor<f32>, %high: tensor<f32>, %shape: tensor<1xi64>) -> tensor<4xf32> {
  // expected-error@+1 {{'stablehlo.rng' cannot be partitioned yet: each device would do or get something else}}
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @side_effect(%a: tensor<4xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' cannot be partitioned yet: each device would do or get something else}}
  stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @random_inside(%p: i1) {
  scf.if %p {
    // expected-error@+1 {{'stablehlo.partition_id' cannot be partitioned yet: each device would do or get something else}}
    %0 = stablehlo.partition_id : tensor<ui32>
  }
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @call_inside(%p: i1, %a: tensor<8xf32>) {
  scf.if %p {
    // expected-error@+1 {{'scf.if' cannot be partitioned yet: inside its region it calls a function on sharded tensors}}
    func.call @sharded(%a) : (tensor<8xf32>) -> ()
  }
  return
}
func.func private @sharded(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

// expected-error@+1 {{a function of several blocks cannot be partitioned: use structured control flow}}
func.func @blocks(%a: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^end
^end:
  return %a : tensor<8xf32>
}
