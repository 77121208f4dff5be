// RUN: shard-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=DETOUR
// RUN: shard-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=DETOUR
// RUN: shard-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{remarks-above=none}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOTHING --allow-empty
// RUN: shard-opt %s --split-input-file --sdy-per-instruction-partitioning='filter=cholesky' -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALONE

// NOTHING-NOT: remark:

sdy.mesh @mesh = <["x"=2, "y"=3]>
sdy.mesh @line = <["z"=12]>

// Between sub-axes that no single grid has, collectives can only gather the entire tensor and slice it.
// DETOUR: remarks_above.mlir:[[# @LINE + 4]]:8: remark: 'sdy.reshard' op gathers its operand to <@line, [{}, {}]> in the reshard from <@line, [{"z":(1)4}, {}]> to <@line, [{"z":(1)6}, {}]>, as no cheaper plan was found; a device receives 6,480,000 bytes
// A gather that the target requires is not a detour.
// DETOUR-NOT: remark:
func.func @detour(%a: tensor<1200x1800xf32> {sdy.sharding = #sdy.sharding<@line, [{"z":(1)4}, {}]>}) -> (tensor<1200x1800xf32>, tensor<1200x1800xf32>) {
  %0 = sdy.reshard %a <@line, [{"z":(1)6}, {}]> : tensor<1200x1800xf32>
  %1 = sdy.reshard %a <@line, [{}, {}]> : tensor<1200x1800xf32>
  return %0, %1 : tensor<1200x1800xf32>, tensor<1200x1800xf32>
}

// An op that is partitioned by itself.
// ALONE: remarks_above.mlir:[[# @LINE + 2]]:8: remark: 'stablehlo.cholesky' op has operand 0 gathered along dimension 0, which its sharding rule requires to be unsharded; a device receives 2,000,000 bytes
func.func @alone(%a: tensor<1000x1000xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<1000x1000xf32> {
  %0 = stablehlo.cholesky %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}
