// RUN: shard-opt %s --canonicalize=enable-patterns=reshard-of-reshard | FileCheck %s

// Patterns of sdy alone do not merge constants with different shardings, which their users share.
// CHECK-LABEL: func.func @constants
// CHECK-DAG: %[[SHARDED:.*]] = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<[1.000000e+00, 2.000000e+00]>
// CHECK-DAG: %[[REPLICATED:.*]] = stablehlo.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK-DAG: %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}]>
// CHECK: stablehlo.add %[[RESHARD]], %[[SHARDED]]
// CHECK: stablehlo.add %arg0, %[[REPLICATED]]
sdy.mesh @mesh = <["x"=2]>
func.func @constants(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %2 = sdy.reshard %a <@mesh, [{}]> : tensor<2xf32>
  %3 = sdy.reshard %2 <@mesh, [{"x"}]> : tensor<2xf32>
  %4 = stablehlo.add %3, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<2xf32>
  %5 = stablehlo.add %a, %1 : tensor<2xf32>
  return %4, %5 : tensor<2xf32>, tensor<2xf32>
}

// These patterns do not fold constants, with or without reshards to simplify.
// CHECK-LABEL: func.func @sum
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}]>
// CHECK: return %[[SUM]], %[[RESHARD]]
func.func @sum(%a: tensor<2xf32>) -> (i32, tensor<2xf32>) {
  %0 = arith.constant 1 : i32
  %1 = arith.constant 2 : i32
  %2 = arith.addi %0, %1 : i32
  %3 = sdy.reshard %a <@mesh, [{}]> : tensor<2xf32>
  %4 = sdy.reshard %3 <@mesh, [{"x"}]> : tensor<2xf32>
  return %2, %4 : i32, tensor<2xf32>
}

// CHECK-LABEL: func.func @product
// CHECK: %[[PRODUCT:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: return %[[PRODUCT]]
func.func @product() -> i32 {
  %0 = arith.constant 3 : i32
  %1 = arith.constant 2 : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
