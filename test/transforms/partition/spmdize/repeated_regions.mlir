// RUN: shard-opt %s --pass-pipeline='builtin.module(spmd-pipeline{verify-repetition=true})' \
// RUN:   --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// The second reduction, which replays the plan of the first, has its own locations, also in copies of its region.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.compare LT, {{.*}}":[[# @LINE + 11]]:13
// CHECK: stablehlo.compare LT, {{.*}}":[[# @LINE + 10]]:13
// CHECK: stablehlo.compare LT, {{.*}}":[[# @LINE + 17]]:13
sdy.mesh @m = <["a"=2, "b"=3]>
func.func @main(%x: tensor<1x12xf64> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}]>}, %y: tensor<1x12xf64> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}]>}) -> (tensor<1xf64>, tensor<1xi32>, tensor<1xf64>, tensor<1xi32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f64>
  %first = stablehlo.constant dense<1> : tensor<i32>
  %i = stablehlo.iota dim = 1 : tensor<1x12xi32>
  %0:2 = stablehlo.reduce(%x init: %one), (%i init: %first) across dimensions = [1]
      : (tensor<1x12xf64>, tensor<1x12xi32>, tensor<f64>, tensor<i32>) -> (tensor<1xf64>, tensor<1xi32>)
    reducer(%a: tensor<f64>, %b: tensor<f64>) (%c: tensor<i32>, %d: tensor<i32>) {
    %less = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %v = stablehlo.select %less, %a, %b : tensor<i1>, tensor<f64>
    %w = stablehlo.select %less, %c, %d : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f64>, tensor<i32>
  }
  %1:2 = stablehlo.reduce(%y init: %one), (%i init: %first) across dimensions = [1]
      : (tensor<1x12xf64>, tensor<1x12xi32>, tensor<f64>, tensor<i32>) -> (tensor<1xf64>, tensor<1xi32>)
    reducer(%a: tensor<f64>, %b: tensor<f64>) (%c: tensor<i32>, %d: tensor<i32>) {
    %less = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %v = stablehlo.select %less, %a, %b : tensor<i1>, tensor<f64>
    %w = stablehlo.select %less, %c, %d : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f64>, tensor<i32>
  }
  return %0#0, %0#1, %1#0, %1#1 : tensor<1xf64>, tensor<1xi32>, tensor<1xf64>, tensor<1xi32>
}
