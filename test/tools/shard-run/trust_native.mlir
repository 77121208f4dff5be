// RUN: not shard-run %s --function=calls 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not shard-run %s --function=harmless --engine=pjrt 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not shard-run %S/Inputs/declared_callee.mlir 2>&1 | FileCheck %s --check-prefix=DECLARED
// RUN: shard-run %s --function=harmless --trust-native | FileCheck %s --check-prefix=RUNS
// RUN: shard-run %s --function=calls --trust-native | FileCheck %s --check-prefix=RUNS

// A module with native code in any function runs only with --trust-native.

// REFUSED: trust_native.mlir:[[# @LINE + 14]]:1: error: 'llvm.func' op is native code
// REFUSED: trust_native.mlir:[[# @LINE + 17]]:3: error: 'llvm.inline_asm' op is native code
// REFUSED: trust_native.mlir:[[# @LINE + 17]]:8: error: 'llvm.call' op is native code
// REFUSED: trust_native.mlir:[[# @LINE + 21]]:8: error: 'memref.extract_aligned_pointer_as_index' op is native code
// REFUSED: shard-run: error: the program contains native code, which has unrestricted access to this machine: --trust-native, or trust_native=True in Python, allows it
// REFUSED-NOT: {{.}}

// DECLARED: declared_callee.mlir:3:8: error: 'func.call' op refers to @absent, which has no body: it would be a library function
// DECLARED: shard-run: error: the program contains native code

// RUNS: 0 {{.*}} OK

sdy.mesh @mesh = <["x"=2]>

llvm.func @abs(i32) -> i32

func.func @calls(%a: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xi32> {
  %c = arith.constant -3 : i32
  llvm.inline_asm has_side_effects "nop", "" : () -> ()
  %0 = llvm.call @abs(%c) : (i32) -> i32
  return %a : tensor<8xi32>
}

func.func private @address(%a: memref<4xf32>) -> index {
  %0 = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
  return %0 : index
}

func.func @harmless(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
