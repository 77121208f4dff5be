// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @other_argument_type(%a: tensor<8xf32>) {
  // expected-error @+1 {{'sdy.named_computation' op operand 0 has type tensor<8xf32>, but the body takes tensor<4xf32>}}
  %0 = sdy.named_computation<"f">(%a) (%b: tensor<4xf32>) {
    sdy.return %b : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @too_few_arguments(%a: tensor<8xf32>) {
  // expected-error @+1 {{has 2 operands, but its body takes 1}}
  %0 = sdy.named_computation<"f">(%a, %a) (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @other_result_type(%a: tensor<8xf32>) {
  // expected-error @+1 {{result 0 has type tensor<8xi1>, but the body returns tensor<8xf32>}}
  %0 = sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xi1>
  return
}

// -----

func.func @too_few_results(%a: tensor<8xf32>) {
  // expected-error @+1 {{has 0 results, but its body returns 1}}
  sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @in_sharding(%a: tensor<8xf32>) {
  // expected-error @+1 {{operand: dim 0: unknown axis "q"}}
  %0 = sdy.named_computation<"f">(%a) in_shardings=[<@mesh, [{"q"}]>] (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @out_sharding(%a: tensor<8xf32>) {
  // expected-error @+1 {{result 1: the sharding has 2 dimensions, but the tensor has 1}}
  %0:2 = sdy.named_computation<"f">(%a) out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{}, {}]>] (%b: tensor<8xf32>) {
    sdy.return %b, %b : tensor<8xf32>, tensor<8xf32>
  } : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @missing_out_sharding(%a: tensor<8xf32>) {
  // expected-error @+1 {{1 shardings are given for 2 results}}
  %0:2 = sdy.named_computation<"f">(%a) out_shardings=[<@mesh, [{"x"}]>] (%b: tensor<8xf32>) {
    sdy.return %b, %b : tensor<8xf32>, tensor<8xf32>
  } : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @name_is_no_string(%a: tensor<8xf32>) {
  // expected-error @+1 {{requires a string attribute 'name'}}
  "sdy.named_computation"() ({
    sdy.return
  }) {name = 1 : i32} : () -> ()
  return
}

// -----

func.func @two_blocks() {
  // expected-error @+1 {{requires one region with one block, got 1 regions with 2 blocks}}
  "sdy.named_computation"() ({
    sdy.return
  ^second:
    sdy.return
  }) {name = "f"} : () -> ()
  return
}

// -----

func.func @in_shardings_kind(%a: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'in_shardings' must be a #sdy.sharding_per_value, got unit}}
  "sdy.named_computation"() ({
    sdy.return
  }) {name = "f", in_shardings} : () -> ()
  return
}
