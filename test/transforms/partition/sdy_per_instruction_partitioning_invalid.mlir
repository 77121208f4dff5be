// RUN: shard-opt %s --split-input-file --verify-diagnostics --sdy-per-instruction-partitioning
// RUN: not shard-opt %s --split-input-file --sdy-per-instruction-partitioning='filter=selectLow=few' 2>&1 | FileCheck %s
// RUN: not shard-opt %s --split-input-file --sdy-per-instruction-partitioning='replica-count=2 partition-count=2' 2>&1 | FileCheck %s --check-prefix=BOTH

// CHECK: error: invalid token 'selectLow=few' in filter: expected parts of names, selectLow=N or selectHigh=N
// BOTH: error: 2 replicas of 2 partitions cannot be identified by one id: replica-count or partition-count must be 1

sdy.mesh @mesh = <["x"=2]>

func.func @operand_is_partial(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.negate' op cannot be partitioned individually: an operand is partial, but a manual computation requires reduced values}}
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @dynamic(%a: tensor<?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<?xf32> {
  // expected-error@+1 {{'stablehlo.negate' op cannot be partitioned individually: dimension 0 of tensor<?xf32> is both sharded and dynamic}}
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @unknown(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op cannot be partitioned individually: it has no sharding rule}}
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
