// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_rules.py --spmdize=verify-repetition=true -o /dev/null 2>&1 | FileCheck %s
// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_rules.py --shard-spmdize='verify-repetition=true' -o /dev/null 2>&1 | FileCheck %s
// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_rules.py --shard-spmdize='collectives=stablehlo verify-repetition=true' -o /dev/null 2>&1 | FileCheck %s
// RUN: shard-opt %s --allow-unregistered-dialect --load %S/Inputs/impure_rules.py --spmdize | FileCheck %s --check-prefix=UNSEEN

// Both rules depend on the position of an op. The one registered as pure is called only for the first op, which the
// developer's option detects; the other one, which has the default, is called for each op.
// CHECK-NOT: my.honest
// CHECK: verify_repetition.mlir:[[# @LINE + 11]]:8: error: 'my.impure' op becomes 'my.impure' with position = 3 : i64 with the plan of an isomorphic op, but 'my.impure' with position = 2 : i64 with its own: its sharding rule, or a partition rule registered as pure, depends on properties in which isomorphic ops differ
// CHECK-NOT: my.honest

// UNSEEN: "my.honest"(%arg0) {position = 0 : i64}
// UNSEEN: "my.honest"(%{{.*}}) {position = 1 : i64}
// UNSEEN: "my.impure"(%{{.*}}) {position = 3 : i64}
// UNSEEN: "my.impure"(%{{.*}}) {position = 3 : i64}
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = "my.honest"(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "my.honest"(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "my.impure"(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = "my.impure"(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "my.honest"(%3) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
