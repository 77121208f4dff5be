// RUN: shard-opt %s --sdy-pad-for-divisibility --split-input-file --verify-diagnostics

sdy.mesh @mesh = <["x"=4]>

// expected-error @+2 {{argument #1 has a non-divisible sharding: tensor<7xf32> cannot be sharded evenly as <@mesh, [{"x"}]>}}
// expected-error @+1 {{failed to legalize operation 'func.func': arguments and results of functions must have even shards}}
func.func @argument(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

sdy.mesh @mesh = <["x"=4]>

// expected-error @+2 {{result #0 has a non-divisible sharding: tensor<7xf32> cannot be sharded evenly as <@mesh, [{"x"}]>}}
// expected-error @+1 {{failed to legalize operation 'func.func'}}
func.func @result(%a: tensor<7xf32>) -> (tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return %a : tensor<7xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

func.func @dynamic(%a: tensor<7x?xf32>) -> tensor<7x?xf32> {
  // expected-error @+1 {{'stablehlo.abs' op: tensor<7x?xf32> has a dynamic size and cannot be padded to even shards: sizes must be static}}
  %0 = stablehlo.abs %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<7x?xf32>
  return %0 : tensor<7x?xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

func.func @windows_over_a_sharded_kernel(%a: tensor<1x9x1xf32>, %b: tensor<7x1x1xf32>) -> tensor<1x3x1xf32> {
  %0 = sdy.all_slice [{"x"}, {}, {}] %b out_sharding=<@mesh, [{"x"}, {}, {}]> : tensor<7x1x1xf32>
  // expected-error @+1 {{'stablehlo.convolution' op reduces dimension 0 of operand 1, which has uneven shards and no known padding value}}
  %1 = stablehlo.convolution(%a, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x9x1xf32>, tensor<7x1x1xf32>) -> tensor<1x3x1xf32>
  return %1 : tensor<1x3x1xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @blocks_that_are_sharded(%a: tensor<6xf32>) -> tensor<6xf32> {
  %0 = sdy.all_slice [{"x", "y"}] %a out_sharding=<@mesh, [{"x", "y"}]> : tensor<6xf32>
  // expected-error @+1 {{'sdy.manual_computation' op has a tensor sharded as <@mesh, [{"x", "y"}]>, whose dimension 0 of size 6 is not divisible by 4: shards along manual axes must be divisible by the sizes of the other axes}}
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x", "y"}]>] manual_axes={"x"} (%b: tensor<3xf32>) {
    %2 = stablehlo.abs %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : tensor<3xf32>
    sdy.return %2 : tensor<3xf32>
  } : (tensor<6xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

func.func @quantized(%a: tensor<7x!quant.uniform<i8:f32, 1.0>>) -> tensor<8xf32> {
  // expected-error @+1 {{cannot be padded to even shards: no padding constant is known for this type}}
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7x!quant.uniform<i8:f32, 1.0>>
  %1 = stablehlo.constant dense<0.0> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
