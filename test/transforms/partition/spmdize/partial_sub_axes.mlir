// RUN: shard-opt %s --pass-pipeline='builtin.module(spmd-pipeline)' | FileCheck %s
// RUN: shard-opt %s --pass-pipeline='builtin.module(spmd-pipeline{collectives=stablehlo})' | FileCheck %s --check-prefix=HLO

// A maximum is reduced along one half of "a" after the other; these sub-axes shard no tensor.
// CHECK: shard.grid @m(shape = 2x2x2x2x2)
// CHECK-LABEL: func.func @main
// CHECK: shard.all_reduce %{{.*}} on @m grid_axes = [1] reduction = max
// CHECK: shard.all_reduce %{{.*}} on @m grid_axes = [0] reduction = max
// HLO: "stablehlo.all_reduce"
sdy.mesh @m = <["a"=4, "b"=2, "c"=2, "d"=2]>
func.func @main(%x: tensor<2x8x3xf64> {sdy.sharding = #sdy.sharding<@m, [{"b", "d", ?}, {"a", ?}, {}]>}) -> (tensor<f64>) {
  %one = "stablehlo.constant"() <{value = dense<1.0> : tensor<f64>}> : () -> tensor<f64>
  %maxima:2 = "stablehlo.reduce"(%x, %x, %one, %one) <{dimensions = array<i64: 1, 2>}> ({
  ^bb0(%v24: tensor<f64>, %v25: tensor<f64>, %v26: tensor<f64>, %v27: tensor<f64>):
    %v28 = "stablehlo.maximum"(%v24, %v26) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %v29 = "stablehlo.maximum"(%v25, %v27) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "stablehlo.return"(%v28, %v29) : (tensor<f64>, tensor<f64>) -> ()
  }) : (tensor<2x8x3xf64>, tensor<2x8x3xf64>, tensor<f64>, tensor<f64>) -> (tensor<2xf64>, tensor<2xf64>)
  %minima:2 = "stablehlo.reduce"(%maxima#0, %maxima#0, %one, %one) <{dimensions = array<i64: 0>}> ({
  ^bb0(%v57: tensor<f64>, %v58: tensor<f64>, %v59: tensor<f64>, %v60: tensor<f64>):
    %v61 = "stablehlo.minimum"(%v57, %v59) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %v62 = "stablehlo.minimum"(%v58, %v60) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "stablehlo.return"(%v61, %v62) : (tensor<f64>, tensor<f64>) -> ()
  }) : (tensor<2xf64>, tensor<2xf64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %minima#1 : tensor<f64>
}
