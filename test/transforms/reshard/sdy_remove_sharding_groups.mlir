// RUN: shard-opt %s --sdy-remove-sharding-groups | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: sdy.sharding_group
// CHECK: stablehlo.while
// CHECK-NOT: sdy.sharding_group
// CHECK: return
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  sdy.sharding_group %a group_id=0 : tensor<4xf32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %limit, %v = %a) : tensor<i32>, tensor<4xf32>
   cond {
    %go = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    sdy.sharding_group %v group_id=0 : tensor<4xf32>
    stablehlo.return %i, %v : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// An unreachable block is processed, too.
// CHECK-LABEL: func.func @unreachable
// CHECK-NOT: sdy.sharding_group
func.func @unreachable(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
^never:
  sdy.sharding_group %a group_id=1 : tensor<4xf32>
  return %a : tensor<4xf32>
}
