// RUN: not shard-run %s 2>&1 | FileCheck %s
// RUN: shard-run %s --shape arg0=6x4 | FileCheck %s --check-prefix=STATIC
// RUN: not shard-run %s --shape batch=6 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not shard-run %s --shape 0=6x 2>&1 | FileCheck %s --check-prefix=INVALID

// STATIC: 0 {{ *}}tensor<6x4xf32> {{.*}} OK
// UNKNOWN: error: the program has no argument or dimension variable 'batch'; give the shapes of arguments, as in 0=SIZEx4
// INVALID: shard-run: error: argument --shape: '0=6x' is not a shape: expected x=32x16 for an argument, or batch=32
// CHECK: dynamic_shapes.mlir:[[# @LINE + 4]]:8: error: 'stablehlo.tanh' op: propagation requires static shapes, but result 0 has type tensor<?x4xf32>; set sizes with shard-run --shape or --shard-make-static
// CHECK: shard-run: error: the program cannot be sharded by 'shard-propagate'
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<?x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<?x4xf32> {
  %0 = stablehlo.tanh %a : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
