// RUN: shard-run %s | FileCheck %s
// RUN: shard-run -n 4 %s | FileCheck %s
// RUN: shard-run -n 4 - < %s | FileCheck %s
// RUN: shard-run --no-verify %s | FileCheck %s --check-prefix=UNVERIFIED

// CHECK: @main on 4 ranks, compared with it on one, without sharding:
// CHECK-NEXT: result  type             sharding{{ +}}max abs error  max rel error
// CHECK-NEXT: 0       tensor<6x4xf64>  <@mesh, [{"x"}, {}]>  {{[0-9.e+-]+ +[0-9.e+-]+ +}}OK
// CHECK-NEXT: 1       tensor<4x4xf64>  <@mesh, [{}, {"y"}]>  {{[0-9.e+-]+ +[0-9.e+-]+ +}}OK
// CHECK-NOT: {{.}}

// UNVERIFIED: @main on 4 ranks, not compared with anything:
// UNVERIFIED-NEXT: result  type             sharding
// UNVERIFIED-NEXT: 0       tensor<6x4xf64>  <@mesh, [{"x"}, {}]>
// UNVERIFIED-NEXT: 1       tensor<4x4xf64>  <@mesh, [{}, {"y"}]>
// UNVERIFIED-NOT: {{.}}

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(
    %a: tensor<6x4xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<4x4xf64> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<6x4xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<4x4xf64>) {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<6x4xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%empty : tensor<6x4xf64>) -> tensor<6x4xf64>
  %product = linalg.matmul ins(%a, %b : tensor<6x4xf64>, tensor<4x4xf64>) outs(%zeros : tensor<6x4xf64>) -> tensor<6x4xf64>
  return %product, %b : tensor<6x4xf64>, tensor<4x4xf64>
}
