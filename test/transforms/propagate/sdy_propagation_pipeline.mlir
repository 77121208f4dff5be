// RUN: shard-opt %s --sdy-propagation-pipeline='module-dump-directory=%t' | FileCheck %s
// RUN: FileCheck %s --check-prefix=BEFORE --input-file=%t/01.before_propagation.mlir
// RUN: FileCheck %s --check-prefix=PROPAGATED --input-file=%t/02.after_propagation.mlir
// RUN: shard-opt %s --sdy-propagation-pipeline='dedup-functions-fully=true' | FileCheck %s --check-prefix=DEDUP
// RUN: shard-opt %s --sdy-propagation-pipeline='inline-meshes=true keep-sharding-rules=true' | FileCheck %s --check-prefix=INLINED

// INLINED-NOT: sdy.mesh
// INLINED: stablehlo.negate
// INLINED-SAME: mesh<["x"=2, "y"=2]>
// INLINED-SAME: sdy.sharding_rule
sdy.mesh @mesh = <["x"=2, "y"=2]>

// BEFORE: stablehlo.negate %{{.*}} : tensor<8xf32>

// Calls with equal shardings share a function, and other calls do not.
// CHECK: func.func @main(
// CHECK: call @twice(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK: call @twice(%{{.*}}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK: call @twice_{{[0-9]+}}(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}
// CHECK: func.func private @twice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// CHECK: stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK: func.func private @twice_{{[0-9]+}}(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})

// PROPAGATED: call @twice(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}

// All calls share one function without shardings, because their shardings differ.
// DEDUP: call @twice(
// DEDUP: call @twice(
// DEDUP: call @twice(
// DEDUP: func.func private @twice(%arg0: tensor<8xf32>) -> tensor<8xf32>
// DEDUP-NOT: func.func
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = call @twice(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  %2 = call @twice(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @twice(%b) : (tensor<8xf32>) -> tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}

func.func private @twice(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
