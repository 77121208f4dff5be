// RUN: shard-opt %s --split-input-file --verify-diagnostics --spmdize

sdy.mesh @mesh = <["x"=2]>

// expected-error@+1 {{a function cannot return partial values, but its result has unreduced axes}}
func.func @returns_unreduced(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) {
  return %a : tensor<8xf32>
}

// -----

// expected-error@+1 {{sub-axes split axis "x" of mesh @mesh at 2 and at 3, but no grid has axes for both}}
module @cuts {
  sdy.mesh @mesh = <["x"=6]>
  func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>}, %b: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}]>}) {
    return
  }
}

// -----

func.func @side_effect(%a: tensor<4xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call:print' cannot be partitioned: it behaves differently on each device}}
  stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @random_inside(%p: i1) {
  scf.if %p {
    // expected-error@+1 {{'stablehlo.partition_id' cannot be partitioned: it behaves differently on each device}}
    %0 = stablehlo.partition_id : tensor<ui32>
  }
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @call_inside(%b: tensor<8xf32>, %a: tensor<8xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%b : tensor<8xf32>) {
  ^bb0(%o: f32):
    // expected-error@+1 {{'linalg.generic' cannot be partitioned: its region calls a function on sharded tensors}}
    func.call @sharded(%a) : (tensor<8xf32>) -> ()
    linalg.yield %o : f32
  } -> tensor<8xf32>
  return
}
func.func private @sharded(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

// expected-error@+1 {{a function with more than one block cannot be partitioned: use structured control flow}}
func.func @blocks(%a: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^end
^end:
  return %a : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// expected-error@+1 {{argument 0 of the function cannot be partitioned: only ranked tensors of static shape can be sharded, not tensor<?xf32>}}
func.func @dynamic(%a: tensor<?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @manual_in_short_blocks(%a: tensor<7xf32>) -> tensor<7xf32> {
  // expected-error@+1 {{'sdy.manual_computation'}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<3xf32>) {
    sdy.return %b : tensor<3xf32>
  } : (tensor<7xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @dynamic_result(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error@+1 {{'stablehlo.tanh' cannot be partitioned: operand 0 has type tensor<?x4xf32>, but sharded tensors must have static sizes}}
  %0 = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @dynamic_slice(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %n: index) -> tensor<?x4xf32> {
  // expected-error@+1 {{'tensor.extract_slice' cannot be partitioned: result 0 has type tensor<?x4xf32>, but sharded tensors must have static sizes}}
  %0 = tensor.extract_slice %a[0, 0] [%n, 4] [1, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32> to tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @callback(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<f32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call:print' cannot be partitioned: it behaves differently on each device}}
  stablehlo.custom_call @print(%b) {has_side_effect = true} : (tensor<f32>) -> ()
  return %a : tensor<8xf32>
}

// -----

// An error of a partition rule: devices exchange rows, and windows along columns reach over shards.
sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @windows_behind_exchanged_rows(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{'stablehlo.reduce_window' cannot be partitioned: its windows along dimension 1 cross the boundaries of shards of size 4}}
  %0 = "stablehlo.reduce_window"(%a, %zero) <{padding = dense<1> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 3>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([i, j]) {i=4, j=8} permutation={i}, custom>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}
