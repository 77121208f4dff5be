// RUN: shard-opt %s --split-input-file --verify-diagnostics

sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["x"=2, "y"=4]>
func.func @two_meshes(%a: tensor<8xf32>) {
  // expected-error @+1 {{'sdy.manual_computation' op in and out shardings must be on the same mesh or an empty one, but are on @mesh, @other}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@other, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @unknown_manual_axis(%a: tensor<8xf32>) {
  // expected-error @+1 {{unknown manual axis "w"}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x", "w"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @manual_axis_twice(%a: tensor<8xf32>) {
  // expected-error @+1 {{manual axis "x" is given twice}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x", "x"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @free_before_manual(%a: tensor<8xf32>) {
  // expected-error @+1 {{operand: dim 0: manual axis "x" comes after the free axis "y"}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"y", "x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=3]>
func.func @uneven(%a: tensor<8xf32>) {
  // expected-error @+1 {{size 8 cannot be divided evenly into 3 shards}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<3xf32>) {
    sdy.return %b : tensor<3xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @wrong_argument_shape(%a: tensor<8x2xf32>) {
  // expected-error @+1 {{operand: its counterpart in the body is the shape [8, 2]}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%b: tensor<8x2xf32>) {
    sdy.return %b : tensor<8x2xf32>
  } : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @wrong_result_shape(%a: tensor<?xf32>) {
  // expected-error @+1 {{requires [?]}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<?xf32>) {
    %c = tensor.cast %b : tensor<?xf32> to tensor<4xf32>
    sdy.return %c : tensor<4xf32>
  } : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @other_elements(%a: tensor<8xf32>) {
  // expected-error @+1 {{operand 0 has type tensor<8xf32>, but its counterpart in the body, which may differ only in shape, has type tensor<4xf16>}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf16>) {
    %c = arith.extf %b : tensor<4xf16> to tensor<4xf32>
    sdy.return %c : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @too_few_shardings(%a: tensor<8xf32>) {
  // expected-error @+1 {{1 shardings are given for 2 operands}}
  %0 = sdy.manual_computation(%a, %a) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%b: tensor<8xf32>, %c: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @too_many_arguments(%a: tensor<8xf32>) {
  // expected-error @+1 {{the op has 1 operands, but its body has 2}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%b: tensor<8xf32>, %c: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @returns_nothing(%a: tensor<8xf32>) {
  // expected-error @+1 {{the op has 1 results, but its body has 0}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%b: tensor<8xf32>) {
    sdy.return
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @nested_alike(%a: tensor<8xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    // expected-error @+1 {{axis "x" is already manual in an enclosing manual computation}}
    %1 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%c: tensor<4xf32>) {
      sdy.return %c : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @value_from_outside(%a: tensor<8xf32>) {
  // expected-note @+1 {{required by region isolation constraints}}
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    // expected-error @+1 {{using value defined outside the region}}
    %0 = stablehlo.negate %a : tensor<8xf32>
    sdy.return
  } : () -> ()
  return
}

// -----

func.func @no_body() {
  // expected-error @+1 {{'sdy.manual_computation' op requires one region with one block, got 1 regions with 0 blocks}}
  "sdy.manual_computation"() ({}) {in_shardings = #sdy.sharding_per_value<[]>, out_shardings = #sdy.sharding_per_value<[]>, manual_axes = #sdy<manual_axes{}>} : () -> ()
  return
}

// -----

func.func @other_terminator() {
  // expected-error @+1 {{has a body that ends with 'stablehlo.return', but must end with 'sdy.return'}}
  "sdy.manual_computation"() ({
    stablehlo.return
  }) {in_shardings = #sdy.sharding_per_value<[]>, out_shardings = #sdy.sharding_per_value<[]>, manual_axes = #sdy<manual_axes{}>} : () -> ()
  return
}
