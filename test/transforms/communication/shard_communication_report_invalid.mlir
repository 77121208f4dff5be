// RUN: shard-opt %s --split-input-file --shard-communication-report --verify-diagnostics -o /dev/null
// RUN: not shard-opt %s --split-input-file --shard-communication-report -o /dev/null 2>&1 | FileCheck %s

// A global program is rejected, because its report would contain no collectives.
// CHECK-NOT: no collectives
sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{the module is not local: 'func.func' has sdy shardings; the report requires a local program: run shard-spmdize or spmd-pipeline first, and sdy-drop-sharding-and-mesh if shardings remain after it}}
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{the module is not local: it contains 'sdy.sharding_constraint'; the report requires a local program: run shard-spmdize or spmd-pipeline first}}
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
