// RUN: shard-opt %s --sdy-sharding-group-import | FileCheck %s

// Groups 7 and 4 share %a, and 4 and 9 share %c: they become one group, numbered at the position of its last leader, 9,
// and each tensor is in the group once.
// CHECK-LABEL: func.func @merged
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=1
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=0
// CHECK-NEXT: sdy.sharding_group %arg2 group_id=1
// CHECK-NEXT: sdy.sharding_group %arg3 group_id=1
// CHECK-NEXT: return
func.func @merged(%a: tensor<4xf32>, %b: tensor<6xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>) {
  sdy.sharding_group %a group_id=7 : tensor<4xf32>
  sdy.sharding_group %b group_id=2 : tensor<6xf32>
  sdy.sharding_group %c group_id=9 : tensor<4xf32>
  sdy.sharding_group %a group_id=4 : tensor<4xf32>
  sdy.sharding_group %c group_id=4 : tensor<4xf32>
  sdy.sharding_group %d group_id=9 : tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @inside
// CHECK: sdy.sharding_group {{.*}} group_id=2
// CHECK: sdy.sharding_group {{.*}} group_id=2
func.func @inside(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<mesh<["x"=2]>, [{?}]>] out_shardings=[<mesh<["x"=2]>, [{?}]>] manual_axes={} (%b: tensor<4xf32>) {
    sdy.sharding_group %b group_id=30 : tensor<4xf32>
    %1 = math.exp %b : tensor<4xf32>
    sdy.sharding_group %1 group_id=30 : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
