// RUN: shard-opt %s --sdy-reshard-to-collectives --split-input-file --verify-diagnostics

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @reduction_is_missing(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>}) -> tensor<8xf32> {
  // expected-error @+1 {{'sdy.reshard' op from <@mesh, [{"x"}], unreduced={"y"}> to <@mesh, [{}]>: both must be unreduced along the same axes; sdy-insert-explicit-reshards inserts the required reductions}}
  %0 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @partial_all_of_a_sudden(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error @+1 {{both must be unreduced along the same axes}}
  %0 = sdy.reshard %a <@mesh, [{"x"}], unreduced={"y"}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @whole_all_of_a_sudden(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"y"}>}) -> tensor<8xf32> {
  // expected-error @+1 {{both must be unreduced along the same axes}}
  %0 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
