// RUN: not shard-run %s 2>&1 | FileCheck %s

// CHECK: dynamic_shapes.mlir:[[# @LINE + 4]]:8: error: 'stablehlo.tanh' op: propagation needs static shapes, but result 0 has type tensor<?x4xf32>
// CHECK: shard-run: error: the program cannot be sharded by 'shard-propagate'
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<?x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<?x4xf32> {
  %0 = stablehlo.tanh %a : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
