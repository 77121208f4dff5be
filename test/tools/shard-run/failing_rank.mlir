// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{rank=1 how=abort}' 2>&1 | FileCheck %s --check-prefix=ABORT
// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{rank=2 how=segv}' 2>&1 | FileCheck %s --check-prefix=SEGV
// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{rank=0 how=kill}' 2>&1 | FileCheck %s --check-prefix=KILL
// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{rank=3 how=exit}' 2>&1 | FileCheck %s --check-prefix=EXIT
// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{rank=2 how=assert}' 2>&1 | FileCheck %s --check-prefix=ASSERT
// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{how=symbol}' 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{rank=1 how=hang}' --timeout 2 2>&1 | FileCheck %s --check-prefix=HANG
// RUN: not shard-run %s --load %S/Inputs/fail_on_rank.py --pipeline 'shard-propagate;shard-spmdize,fail-on-rank{rank=1 how=change}' 2>&1 | FileCheck %s --check-prefix=CHANGE

// ABORT: shard-run: error: rank 1 of 4 was killed by SIGABRT (Aborted)
// SEGV: shard-run: error: rank 2 of 4 was killed by SIGSEGV (Segmentation fault)
// KILL: shard-run: error: rank 0 of 4 was killed by SIGKILL (Killed)
// EXIT: shard-run: error: rank 3 of 4 ended with exit status 0
// ASSERT: shard-run: error: rank 2 of 4 was killed by SIGABRT (Aborted); its last output:
// ASSERT-NEXT: this rank is not to be
// SYMBOL: error: this calls 'there_is_no_such_function', which no available library defines
// SYMBOL: shard-run: error: the program cannot be run on this machine
// HANG: shard-run: error: the program was stopped after 2 s
// CHANGE: 0       tensor<4x3xf32>  {{.*}}  0.00e+00       0.00e+00       MISMATCH
// CHANGE: shard-run: error: ranks 0 and 1 hold different copies of result 0[0:4, 0:3]: they differ by up to 4

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(%a: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x3xf32> {
  // All ranks wait for each other here.
  %sum = stablehlo.add %a, %a : tensor<4x3xf32>
  %whole = sdy.sharding_constraint %sum <@mesh, [{}, {}]> : tensor<4x3xf32>
  %twice = stablehlo.add %whole, %whole : tensor<4x3xf32>
  return %twice : tensor<4x3xf32>
}
