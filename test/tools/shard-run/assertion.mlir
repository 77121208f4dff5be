// RUN: not shard-run %s 2>&1 | FileCheck %s

// CHECK: shard-run: error: rank {{.*}} was killed by SIGABRT
// CHECK: assertion.mlir:14:3: error: the assertion 'a number from 0 to 9 is not above 9' failed
// CHECK-NEXT: the arguments are random: --inputs and --seed select others

sdy.mesh @mesh = <["x"=2]>

func.func @main(%number: tensor<i32>) -> tensor<i32> {
  %nine = arith.constant 9 : i32
  %element = tensor.extract %number[] : tensor<i32>
  %is_above = arith.cmpi sgt, %element, %nine : i32

  cf.assert %is_above, "a number from 0 to 9 is not above 9"
  %0 = stablehlo.add %number, %number : tensor<i32>
  return %0 : tensor<i32>
}
