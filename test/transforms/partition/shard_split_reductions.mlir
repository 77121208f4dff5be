// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(shard-split-reductions))' | FileCheck %s --check-prefixes=CHECK,SHARD
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(shard-split-reductions{collectives=stablehlo}))' | FileCheck %s --check-prefixes=CHECK,HLO
// RUN: shard-run %s --function=argmax --communication-report=- | FileCheck %s --check-prefix=ARGMAX
// RUN: shard-run %s --function=uneven_argmax | FileCheck %s --check-prefix=UNEVEN
// RUN: shard-run %s --function=product --collectives=stablehlo | FileCheck %s --check-prefix=PRODUCT

// ARGMAX: 0       tensor<6xf32> {{.*}} OK
// ARGMAX: 1       tensor<6xi32> {{.*}} OK
// ARGMAX: all_gather {{.*}} 24 B
// ARGMAX: all_gather {{.*}} 24 B
// UNEVEN: 1       tensor<6xi32> {{.*}} OK
// PRODUCT: 0       tensor<6xf32> {{.*}} OK

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func @argmax(
// CHECK:         stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}]>]>} : (tensor<6x8xf32>) -> tensor<6x2x4xf32>
// CHECK:         stablehlo.reduce({{.*}}) across dimensions = [2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>, <@mesh, [{}, {"x"}]>]>}
// CHECK:         stablehlo.reduce({{.*}}) across dimensions = [1]
// CHECK-SAME:      -> (tensor<6xf32>, tensor<6xi32>)
func.func @argmax(%a: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<6xf32>, tensor<6xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<6x8xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%a init: %least), (%i init: %first) across dimensions = [1] : (tensor<6x8xf32>, tensor<6x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
    %1 = stablehlo.compare GT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare EQ, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.compare LT, %j, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.and %2, %3 : tensor<i1>
    %5 = stablehlo.or %1, %4 : tensor<i1>
    %6 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<f32>
    %7 = stablehlo.select %5, %j, %k : tensor<i1>, tensor<i32>
    stablehlo.return %6, %7 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi32>
}

// The last block is padded with initial values.
// CHECK-LABEL: func @uneven_argmax(
// CHECK:         stablehlo.pad %arg0, %{{.*}}, low = [0, 0], high = [0, 1], interior = [0, 0]
// CHECK:         stablehlo.reduce({{.*}}) across dimensions = [2]
// CHECK:         stablehlo.reduce({{.*}}) across dimensions = [1]
func.func @uneven_argmax(%a: tensor<6x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>}) -> (tensor<6xf32>, tensor<6xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<6x7xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%a init: %least), (%i init: %first) across dimensions = [1] : (tensor<6x7xf32>, tensor<6x7xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
    %1 = stablehlo.compare GT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare EQ, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.compare LT, %j, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.and %2, %3 : tensor<i1>
    %5 = stablehlo.or %1, %4 : tensor<i1>
    %6 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<f32>
    %7 = stablehlo.select %5, %j, %k : tensor<i1>, tensor<i32>
    stablehlo.return %6, %7 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi32>
}

// An all-reduce of `shard` supports products, but partial values of sdy do not.
// CHECK-LABEL: func @product(
// SHARD:         stablehlo.reduce({{.*}}) applies stablehlo.multiply across dimensions = [1] : (tensor<6x8xf32>
// HLO:           stablehlo.reduce({{.*}}) applies stablehlo.multiply across dimensions = [2]
func.func @product(%a: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> tensor<6xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %one) applies stablehlo.multiply across dimensions = [1] : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// Another initial value would be multiplied several times, and an unknown one might be.
// CHECK-LABEL: func @other_initial_values(
// CHECK-COUNT-2: stablehlo.reduce({{.*}}) applies stablehlo.multiply across dimensions = [1] : (tensor<6x8xf32>
// CHECK-NOT:     stablehlo.reduce
// CHECK:         return
func.func @other_initial_values(%a: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, %b: tensor<f32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %two) applies stablehlo.multiply across dimensions = [1] : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.reduce(%a init: %b) applies stablehlo.multiply across dimensions = [1] : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
  return %0, %1 : tensor<6xf32>, tensor<6xf32>
}

// Unchanged: a sum has a collective, and a dimension that is not sharded has one block.
// CHECK-LABEL: func @left_alone(
// CHECK:         stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<6x8xf32>
// CHECK:         stablehlo.reduce({{.*}}) applies stablehlo.multiply across dimensions = [0] : (tensor<6x8xf32>
func.func @left_alone(%a: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<6xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.reduce(%a init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<6x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1 : tensor<6xf32>, tensor<8xf32>
}
