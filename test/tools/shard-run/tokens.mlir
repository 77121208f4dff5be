// RUN: shard-run %s | FileCheck %s
// RUN: shard-run --engine=pjrt %s | FileCheck %s
// RUN: shard-run %s --function=step | FileCheck %s --check-prefix=INNER
// RUN: shard-run --engine=pjrt %s --function=step | FileCheck %s --check-prefix=INNER

// Tokens do not count as arguments or results of a run.
// CHECK: result
// CHECK-NEXT: 0 tensor<4xf32> <@m, [{"a"}]> {{.*}} OK
// CHECK-NEXT: 1 f32 replicated {{.*}} OK
// CHECK-NOT: {{.}}

// The callers of the function that is run do not run.
// INNER: 0 tensor<4xf32> {{.*}} OK
// INNER-NOT: {{.}}
sdy.mesh @m = <["a"=2]>
func.func @main(%t: !stablehlo.token, %x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}, %f: f32) -> (tensor<4xf32>, !stablehlo.token, f32) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %made = stablehlo.create_token : !stablehlo.token
  %both = stablehlo.after_all %t, %made : !stablehlo.token
  %0:3 = stablehlo.while(%i = %zero, %a = %x, %s = %both) : tensor<i32>, tensor<4xf32>, !stablehlo.token
  cond {
    %is_less = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %is_less : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %1:2 = func.call @step(%s, %a) : (!stablehlo.token, tensor<4xf32>) -> (tensor<4xf32>, !stablehlo.token)
    stablehlo.return %next, %1#0, %1#1 : tensor<i32>, tensor<4xf32>, !stablehlo.token
  }
  return %0#1, %0#2, %f : tensor<4xf32>, !stablehlo.token, f32
}

func.func @step(%t: !stablehlo.token, %x: tensor<4xf32>) -> (tensor<4xf32>, !stablehlo.token) {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1:2 = stablehlo.optimization_barrier %0, %t : tensor<4xf32>, !stablehlo.token
  return %1#0, %1#1 : tensor<4xf32>, !stablehlo.token
}
