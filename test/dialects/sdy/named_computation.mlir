// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func @named
func.func @named(%a: tensor<8xf32>, %b: tensor<4x4xi32>) -> tensor<8xf32> {
  // CHECK: sdy.named_computation<"empty">() () {
  // CHECK-NEXT: sdy.return
  // CHECK-NEXT: } : () -> ()
  sdy.named_computation<"empty">() () {
    sdy.return
  } : () -> ()
  // CHECK: sdy.named_computation<"with \22quotes\22">(%arg0) (%arg2: tensor<8xf32>) {
  %0 = sdy.named_computation<"with \22quotes\22">(%a) (%c: tensor<8xf32>) {
    sdy.return %c : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: sdy.named_computation<"in">(%{{.*}}) in_shardings=[<@mesh, [{"x", ?}]>] (%arg2: tensor<8xf32>) {
  %1 = sdy.named_computation<"in">(%0) in_shardings=[<@mesh, [{"x", ?}]>] (%c: tensor<8xf32>) {
    sdy.return %c : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: %[[R:.*]]:2 = sdy.named_computation<"both">(%{{.*}}, %arg1)
  // CHECK-SAME: in_shardings=[<@mesh, [{}]>, <@mesh, [{"y"}, {}], replicated={"x"}>] out_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{?}]>] (%arg2: tensor<8xf32>, %arg3: tensor<4x4xi32>) {
  %2:2 = sdy.named_computation<"both">(%1, %b) in_shardings=[<@mesh, [{}]>, <@mesh, [{"y"}, {}], replicated={"x"}>] out_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{?}]>] (%c: tensor<8xf32>, %d: tensor<4x4xi32>) {
    sdy.return %d, %c : tensor<4x4xi32>, tensor<8xf32>
  // CHECK: } {jax.result = "r"} : (tensor<8xf32>, tensor<4x4xi32>) -> (tensor<4x4xi32>, tensor<8xf32>)
  } {jax.result = "r"} : (tensor<8xf32>, tensor<4x4xi32>) -> (tensor<4x4xi32>, tensor<8xf32>)
  // CHECK: return %[[R]]#1
  return %2#1 : tensor<8xf32>
}
