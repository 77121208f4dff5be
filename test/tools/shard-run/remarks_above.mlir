// RUN: shard-run %s --remarks-above=31 2>&1 | FileCheck %s --check-prefixes=MISSPELT,GATHERED
// RUN: shard-run %s --remarks-above=31 --collectives=stablehlo 2>&1 | FileCheck %s --check-prefixes=MISSPELT,GATHERED
// RUN: shard-run %s 2>&1 | FileCheck %s --check-prefixes=MISSPELT,SMALL
// RUN: not shard-run %s --remarks-above=all 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not shard-run %s --remarks-above=1 --pipeline='cse;cse' 2>&1 | FileCheck %s --check-prefix=PIPELINE

// Both pipelines see the misspelt attribute, and the user is warned once.
// MISSPELT: remarks_above.mlir:[[# @LINE + 8]]:84: warning: 'sdy.shardin' is not an attribute of sdy and is not read; did you mean 'sdy.sharding'?
// MISSPELT-NOT: sdy.shardin
// GATHERED: remark: 'stablehlo.sort' op has operand 0 gathered along dimension 0, which its sharding rule requires to be unsharded; a device receives 32 bytes
// SMALL-NOT: remark:
// BYTES: shard-run: error: argument --remarks-above: 'all' is not a number of bytes: expected a non-negative integer or none
// PIPELINE: shard-run: error: --remarks-above is not allowed with --pipeline: set the option on a pass of the pipeline

sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: tensor<f32> {sdy.shardin = 1 : i32}) -> tensor<16xf32> {
  %0 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %2 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
