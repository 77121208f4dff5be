// RUN: shard-opt %s --split-input-file --verify-diagnostics --shard-make-static=shapes=0=32x16

// expected-error@+1 {{argument 1 has type tensor<8x?xf32>: give its shape, as in --shape 1=8xSIZE}}
func.func @main(%x: tensor<?x16xf32>, %y: tensor<8x?xf32>) {
  return
}

// -----

// expected-error@+1 {{argument 0 has type tensor<?x17xf32>, which does not match the shape 32x16}}
func.func @main(%x: tensor<?x17xf32>) {
  return
}

// -----

// expected-error@+1 {{argument 0 does not exist: the program has 0 arguments}}
func.func @main() {
  return
}

// -----

func.func @main(%x: tensor<?x16xf32>, %n: index) -> tensor<?x16xf32> {
  // expected-error@+1 {{'tensor.empty' has a result of type tensor<?x16xf32>, whose shape depends on run-time values}}
  %0 = tensor.empty(%n) : tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// -----

// expected-error@below {{has no function @main}}
module {
}

// -----

func.func @main(%x: tensor<?x16xf32>) -> tensor<i32> {
  %most = stablehlo.constant dense<8> : tensor<i32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x16xf32>) -> tensor<i32>
  %holds = stablehlo.compare LT, %size, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  // expected-error@+1 {{Expected fewer than 8, not 32}}
  stablehlo.custom_call @shape_assertion(%holds, %size) {api_version = 2 : i32, has_side_effect = true,
    error_message = "Expected fewer than 8, not {0}."} : (tensor<i1>, tensor<i32>) -> ()
  return %size : tensor<i32>
}
