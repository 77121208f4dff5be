// Shardings that both dialects can express do not change in a round trip.
// RUN: shard-opt %s > %t.before
// RUN: shard-opt %s --convert-sdy-to-shard=partial=true --convert-shard-to-sdy > %t.after
// RUN: cmp %t.before %t.after

// Neither do they after every tensor has a sharding.
// RUN: shard-opt %s --shard-propagate > %t.propagated
// RUN: shard-opt %t.propagated --convert-sdy-to-shard --convert-shard-to-sdy > %t.back
// RUN: cmp %t.propagated %t.back

// A full conversion from sdy has the form that upstream's passes accept and do not change.
// RUN: shard-opt %s --shard-propagate --convert-sdy-to-shard > %t.shard
// RUN: shard-opt %t.shard --convert-shard-to-sdy --convert-sdy-to-shard > %t.again
// RUN: cmp %t.shard %t.again
// RUN: shard-opt %t.shard --pass-pipeline='builtin.module(func.func(sharding-propagation))' > %t.upstream
// RUN: cmp %t.shard %t.upstream
// RUN: shard-opt %t.shard --pass-pipeline='builtin.module(func.func(shard-partition,canonicalize))' | FileCheck %s

// The same holds for a program in upstream's form.
// RUN: shard-opt %examples/perceptron_shard.mlir --shard-propagate --convert-sdy-to-shard > %t.perceptron
// RUN: shard-opt %t.perceptron --convert-shard-to-sdy --convert-sdy-to-shard > %t.again
// RUN: cmp %t.perceptron %t.again
// RUN: shard-opt %t.perceptron --pass-pipeline='builtin.module(func.func(sharding-propagation))' > %t.upstream
// RUN: cmp %t.perceptron %t.upstream
// RUN: shard-opt %t.perceptron --pass-pipeline='builtin.module(func.func(shard-partition))' > %t.local

sdy.mesh @mesh = <["data"=2, "model"=4]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<4x16xf32>, %arg1: tensor<16x8xf32>, %arg2: tensor<8x6xf32>) -> tensor<4x6xf32>
// CHECK: linalg.matmul ins(%arg0, %arg1 : tensor<4x16xf32>, tensor<16x8xf32>) outs(%{{.*}} : tensor<4x8xf32>)
// CHECK: %[[PARTIAL:.*]] = linalg.matmul ins(%{{.*}}, %arg2 : tensor<4x8xf32>, tensor<8x6xf32>) outs(%{{.*}} : tensor<4x6xf32>)
// CHECK-NEXT: %[[SUM:.*]] = shard.all_reduce %[[PARTIAL]] on @mesh grid_axes = [1]
// CHECK-NEXT: %[[EXP:.*]] = tosa.exp %[[SUM]]
// CHECK-NEXT: return %[[EXP]] : tensor<4x6xf32>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %v: tensor<32x6xf32>)
    -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %hidden = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  %relu = tosa.sigmoid %hidden : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %empty_out = tensor.empty() : tensor<8x6xf32>
  %zeros_out = linalg.fill ins(%zero : f32) outs(%empty_out : tensor<8x6xf32>) -> tensor<8x6xf32>
  %out = linalg.matmul ins(%relu, %v : tensor<8x32xf32>, tensor<32x6xf32>) outs(%zeros_out : tensor<8x6xf32>) -> tensor<8x6xf32>
  %exp = tosa.exp %out : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %exp : tensor<8x6xf32>
}
