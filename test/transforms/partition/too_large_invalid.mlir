// RUN: shard-opt %s --split-input-file --verify-diagnostics --spmd-pipeline
// RUN: shard-opt %s --split-input-file --verify-diagnostics --spmd-pipeline=collectives=stablehlo

// A mesh that is too large is reported immediately, whatever the target.

// expected-error@+2 {{has 2147483648 devices, too many to partition for: at most 262144}}
module {
  sdy.mesh @mesh = <["x"=2147483648]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// expected-error@+2 {{has 1180591620717411303424 devices, too many to partition for: at most 262144}}
module {
  sdy.mesh @mesh = <["a0"=2, "a1"=2, "a2"=2, "a3"=2, "a4"=2, "a5"=2, "a6"=2, "a7"=2, "a8"=2, "a9"=2, "a10"=2, "a11"=2, "a12"=2, "a13"=2, "a14"=2, "a15"=2, "a16"=2, "a17"=2, "a18"=2, "a19"=2, "a20"=2, "a21"=2, "a22"=2, "a23"=2, "a24"=2, "a25"=2, "a26"=2, "a27"=2, "a28"=2, "a29"=2, "a30"=2, "a31"=2, "a32"=2, "a33"=2, "a34"=2, "a35"=2, "a36"=2, "a37"=2, "a38"=2, "a39"=2, "a40"=2, "a41"=2, "a42"=2, "a43"=2, "a44"=2, "a45"=2, "a46"=2, "a47"=2, "a48"=2, "a49"=2, "a50"=2, "a51"=2, "a52"=2, "a53"=2, "a54"=2, "a55"=2, "a56"=2, "a57"=2, "a58"=2, "a59"=2, "a60"=2, "a61"=2, "a62"=2, "a63"=2, "a64"=2, "a65"=2, "a66"=2, "a67"=2, "a68"=2, "a69"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a0"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// With another mesh over other devices.
// expected-error@+2 {{has 2147483648 devices, too many to partition for: at most 262144}}
module {
  sdy.mesh @mesh = <["x"=2147483648]>
  sdy.mesh @small = <["x"=6]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    %1 = stablehlo.constant dense<1.0> : tensor<6xf32>
    %2 = sdy.sharding_constraint %1 <@small, [{"x"}]> : tensor<6xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
// expected-error@+1 {{with 9223372036854775807 elements, more than the 4611686018427387904 that can be partitioned}}
func.func @main(%a: tensor<9223372036854775807xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> tensor<9223372036854775807xf32> {
  %0 = stablehlo.add %a, %a : tensor<9223372036854775807xf32>
  return %0 : tensor<9223372036854775807xf32>
}

// -----

sdy.mesh @mesh = <["x"=3]>
func.func @main(%a: tensor<7x!quant.uniform<i8:f32, 1.0>>) -> tensor<7x!quant.uniform<i8:f32, 1.0>> {
  // expected-error@+1 {{cannot be padded}}
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7x!quant.uniform<i8:f32, 1.0>>
  return %0 : tensor<7x!quant.uniform<i8:f32, 1.0>>
}
