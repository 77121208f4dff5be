// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_sharding_rules.py --sdy-basic-propagate=verify-repetition=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROPAGATE
// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_sharding_rules.py --shard-propagate=verify-repetition=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROPAGATE
// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_sharding_rules.py --spmd-pipeline=verify-repetition=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROPAGATE
// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_sharding_rules.py --sdy-insert-explicit-reshards='enable-full-version=true verify-repetition=true' -o /dev/null 2>&1 | FileCheck %s --check-prefix=RESHARD
// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_sharding_rules.py --sdy-insert-explicit-reshards='enable-full-version=true planner=optimal verify-repetition=true' -o /dev/null 2>&1 | FileCheck %s --check-prefix=RESHARD
// RUN: shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_sharding_rules.py --sdy-basic-propagate --sdy-insert-explicit-reshards='enable-full-version=true' -o /dev/null

// The rule is called only for the first op, and its result is reused for the others, which the option detects.
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = "my.placed"(%a) : (tensor<8xf32>) -> tensor<8xf32>
  // PROPAGATE: verify_repetition_of_shardings.mlir:[[# @LINE + 1]]:8: error: 'my.placed' op becomes 'my.placed' with sdy.sharding = {{.*}} with the plan of an isomorphic op, but 'my.placed' with its own
  %1 = "my.placed"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "my.other"(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  // RESHARD: verify_repetition_of_shardings.mlir:[[# @LINE + 1]]:8: error: 'my.placed' op becomes 'my.placed' with sdy.sharding = {{.*}} with the plan of an isomorphic op, but 'my.placed' with its own
  %3 = "my.placed"(%2) : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
