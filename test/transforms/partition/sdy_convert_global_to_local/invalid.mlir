// RUN: shard-opt %s --split-input-file --verify-diagnostics --sdy-convert-global-to-local

sdy.mesh @mesh = <["x"=2]>

// expected-error@+1 {{dimension 0 of tensor<7xf32> is in 2 uneven shards: run sdy-pad-for-divisibility first}}
func.func @uneven(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

// expected-error@+1 {{dimension 0 of tensor<?xf32> is dynamic and sharded as <@mesh, [{"x"}]>}}
func.func @dynamic(%a: tensor<?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @disagree(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.add' cannot be partitioned: operand 0 is sharded along [{"x"}], but must be replicated: run sdy-insert-explicit-reshards and sdy-resolve-permutation-factors first}}
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @returned(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{'func.return' cannot be partitioned: operand 0 is sharded along [{"x"}], but must be replicated: run sdy-insert-explicit-reshards and convert reshards to collectives first}}
  return %a : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @partial(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{'stablehlo.dot' cannot be partitioned: its partial results along "x" are used by 'stablehlo.negate' before a reduction}}
  %0 = stablehlo.dot %a, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @reduced_too_far(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{'stablehlo.dot' cannot be partitioned: its results are reduced along "y", but are not partial there}}
  %0 = stablehlo.dot %a, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %1 = sdy.all_reduce {"x", "y"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @product(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  // expected-error@+1 {{'stablehlo.reduce' cannot be partitioned: operand 0 is sharded along [{}, {"x"}], but must be replicated}}
  %0 = stablehlo.reduce(%a init: %one) applies stablehlo.multiply across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @reversed(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{'stablehlo.reverse' cannot be partitioned: a device requires the shard of another device along dimension 0}}
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @shifted(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %f: tensor<f32>) {
  // expected-error@+1 {{'stablehlo.pad' cannot be partitioned: its padding moves elements of dimension 0 between its 2 shards}}
  %0 = stablehlo.pad %a, %f, low = [1], high = [-1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @cut(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{'stablehlo.slice' cannot be partitioned: its slice of dimension 0, which has 2 shards, requires elements of other shards}}
  %0 = stablehlo.slice %a [3:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @unknown(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{'stablehlo.custom_call' cannot be partitioned: it has no sharding rule}}
  %0 = stablehlo.custom_call @mine(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @still_a_reshard(%a: tensor<8xf32>) {
  // expected-error@+1 {{'sdy.reshard' cannot be partitioned: operand 0 is replicated, but must be sharded along [{"x"}]: run sdy-reshard-to-collectives first}}
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @loop(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %go: tensor<i1>) {
  // expected-error@+1 {{'stablehlo.while' cannot be partitioned: operand 0 is sharded along [{"x"}], but must be replicated}}
  %0 = stablehlo.while(%v = %a) : tensor<8xf32>
  cond {
    stablehlo.return %go : tensor<i1>
  } do {
    stablehlo.return %v : tensor<8xf32>
  }
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func private @callee(tensor<8xf32>) -> tensor<8xf32>
func.func @caller(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{'func.call' cannot be partitioned: operand 0 is sharded along [{"x"}], but must be replicated}}
  %0 = call @callee(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @dynamic_slice(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %n: index) {
  // expected-error@+1 {{'tensor.extract_slice' cannot be partitioned: result 0 has type tensor<?x4xf32>, but sharded tensors must have static sizes}}
  %0 = tensor.extract_slice %a[0, 0] [%n, 4] [1, 1] : tensor<8x4xf32> to tensor<?x4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

// An error of a partition rule: slices of two elements may start in one shard and end in the next.
func.func @gather(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %i: tensor<3x1xi32>) -> tensor<3x2x4xf32> {
  // expected-error@+1 {{'stablehlo.gather' cannot be partitioned: its slices cross shard boundaries of dimension 0}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 4>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}], unreduced={"x"}>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([k, m, j]) {i=8, j=4, k=3, l=1, m=2} reduction={i}, custom>} : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x2x4xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}, {}]> : tensor<3x2x4xf32>
  return %1 : tensor<3x2x4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @windows_behind_a_whole_dimension(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{'stablehlo.reduce_window' cannot be partitioned: its windows along dimension 1 cross the boundaries of shards of size 4}}
  %0 = "stablehlo.reduce_window"(%a, %zero) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}
