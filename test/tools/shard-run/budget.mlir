// RUN: shard-run %s --budget bytes=1KiB,collectives=1 | FileCheck %s
// RUN: not shard-run %s --budget bytes=10,time=1s 2>&1 | FileCheck %s --check-prefix=ABOVE
// RUN: not shard-run %s --budget tim=1s 2>&1 | FileCheck %s --check-prefix=NAME

// CHECK: OK

// ABOVE: error: the program exceeds its budget of bytes by {{.*}}: a device receives {{.*}}, and the budget is 10
// ABOVE: note: {{.*}}: all_reduce along x=2 for 'stablehlo.reduce'
// ABOVE: shard-run: error: the program exceeds its budget
// NAME: shard-run: error: argument --budget: 'tim' is not a quantity; did you mean 'time'?

sdy.mesh @mesh = <["x"=2]>

func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
