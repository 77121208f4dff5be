// RUN: shard-opt %s --spmd-pipeline -o /dev/null 2>&1 | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline=collectives=stablehlo -o /dev/null 2>&1 | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=3]>

// Devices would draw different random numbers.
// CHECK: drawn.mlir:[[# @LINE + 4]]:8: remark: 'stablehlo.rng' op draws on the first device, which sends the numbers to all other devices; a device receives 8,640,000 bytes
func.func @drawn(%a: tensor<f32>, %b: tensor<f32>)
    -> (tensor<1200x1800xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %s = stablehlo.constant dense<[1200, 1800]> : tensor<2xi64>
  %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<1200x1800xf32>
  return %0 : tensor<1200x1800xf32>
}
