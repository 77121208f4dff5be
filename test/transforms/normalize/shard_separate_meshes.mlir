// RUN: shard-opt %s --split-input-file --shard-separate-meshes | FileCheck %s

// A constraint to a mesh over other devices, and a return from there.
sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=2], device_ids=[2, 3]>
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@b, [{?}, {"x"}]>}, tensor<8x4xf32>) {
  // CHECK-NEXT: %[[ADD:.*]] = stablehlo.add
  // CHECK-NEXT: %[[BARRIER:.*]] = sdy.propagation_barrier %[[ADD]] allowed_direction=NONE {{.*}}<@b, [{?}, {?}]>
  // CHECK-NEXT: sdy.sharding_constraint %[[BARRIER]] <@b, [{"x"}, {}]>
  // CHECK-NEXT: %[[TO_B:.*]] = sdy.propagation_barrier %[[ADD]] allowed_direction=NONE {{.*}}<@b, [{?}, {?}]>
  // CHECK-NEXT: return %[[TO_B]]
  %0 = stablehlo.add %arg0, %arg0 : tensor<8x4xf32>
  %1 = sdy.sharding_constraint %0 <@b, [{"x"}, {}]> : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// A tensor that all devices hold is used on two meshes: the first use decides its sharding.
sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=2], device_ids=[2, 3]>
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>},
                %both: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: stablehlo.add %arg0, %arg2
  // CHECK-NEXT: %[[BARRIER:.*]] = sdy.propagation_barrier %arg2
  // CHECK-NEXT: stablehlo.add %arg1, %[[BARRIER]]
  %0 = stablehlo.add %arg0, %both : tensor<8xf32>
  %1 = stablehlo.add %arg1, %both : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Meshes over the same devices are not separated.
sdy.mesh @a = <["x"=4]>
sdy.mesh @b = <["y"=2, "z"=2], device_ids=[3, 2, 1, 0]>
// CHECK-LABEL: func.func @main
// CHECK-NOT: barrier
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %arg0 <@b, [{"y"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
