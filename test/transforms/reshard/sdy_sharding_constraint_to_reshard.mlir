// RUN: shard-opt %s --sdy-sharding-constraint-to-reshard | FileCheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {?}]> {note} : tensor<8x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> {note} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
