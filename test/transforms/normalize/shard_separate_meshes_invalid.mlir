// RUN: shard-opt %s --split-input-file --verify-diagnostics --shard-separate-meshes

sdy.mesh @a = <["x"=4]>
sdy.mesh @b = <["x"=2], device_ids=[4, 5]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.add' cannot be partitioned: one operand is on mesh @a (4 devices), but another one is on mesh @b (2 devices) with different devices: reshard one to the mesh of the other with an 'sdy.sharding_constraint'}}
  %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @a = <["x"=4]>
sdy.mesh @b = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{its operands are on mesh @a (4 devices), but its result is on mesh @b (2 devices)}}
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@b, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The devices of @b cannot determine when the loop ends.
sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=2], device_ids=[2, 3]>
func.func @main(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@a, []>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>}) -> (tensor<f32>, tensor<8xf32>) {
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  // expected-error@+1 {{'stablehlo.while' cannot be partitioned: its number of iterations depends on a value on mesh @a (2 devices), which is not available on the other devices of the program}}
  %0 = stablehlo.while(%v = %arg0) : tensor<f32>
    cond {
      %1 = stablehlo.compare LT, %v, %half : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %v, %half : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }
  return %0, %arg1 : tensor<f32>, tensor<8xf32>
}

// -----

sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=2], device_ids=[2, 3]>
func.func @main(%which: tensor<i1> {sdy.sharding = #sdy.sharding<@a, []>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.if' cannot be partitioned: its choice of region depends on a value on mesh @a}}
  %0 = "stablehlo.if"(%which) ({
    stablehlo.return %arg1 : tensor<8xf32>
  }, {
    %1 = stablehlo.negate %arg1 : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
