// RUN: shard-opt %s --spmdize | FileCheck %s

// Two products differ only in their initial values, which are counted once.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0
// CHECK: %[[F:.*]] = linalg.fill ins(%[[ZERO]]
// CHECK: linalg.matmul {{.*}} outs(%[[F]]
// CHECK: %[[G:.*]] = linalg.fill ins(%[[ONE]]
// CHECK: %[[S:.*]] = arith.select %{{.*}}, %[[G]]
// CHECK: linalg.matmul {{.*}} outs(%[[S]]
func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = linalg.fill ins(%one : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%2 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}
