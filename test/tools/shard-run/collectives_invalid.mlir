// RUN: not shard-run %s -n 2 --no-verify --pipeline 'cse;cse' --function refused 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not shard-run %S/Inputs/collectives_that_abort.mlir -n 2 --no-verify --pipeline 'cse;cse' --function send --timeout %hang_guard 2>&1 | FileCheck %s --check-prefix=SEND
// RUN: not shard-run %S/Inputs/collectives_that_abort.mlir -n 2 --no-verify --pipeline 'cse;cse' --function root --timeout %hang_guard 2>&1 | FileCheck %s --check-prefix=ROOT
// RUN: not shard-run %S/Inputs/collectives_that_abort.mlir -n 3 --no-verify --pipeline 'cse;cse' --function root --timeout %hang_guard 2>&1 | FileCheck %s --check-prefix=RANKS

// REFUSED: collectives_invalid.mlir:[[# @LINE + 15]]:11: error: all devices run 'shard.send', so the device at [1] would send to itself
// REFUSED: collectives_invalid.mlir:[[# @LINE + 14]]:11: error: 'shard.send' would deadlock: the program has no 'shard.recv' of tensor<4xf32>
// REFUSED: shard-run: error: the program cannot be lowered to MPI
// REFUSED-NOT: Traceback

// SEND: was killed by SIGABRT (Aborted); its last output:
// SEND: collectives_that_abort.mlir:8:10: error: 'shard.send': a device would send to itself
// ROOT: was killed by SIGABRT (Aborted); its last output:
// ROOT: collectives_that_abort.mlir:19:10: error: the root of 'shard.broadcast' is not in 0..1 along the grid axis 0
// RANKS: of 3 was killed by SIGABRT (Aborted); its last output:
// RANKS: collectives_that_abort.mlir:{{[0-9]+:[0-9]+}}: error: the program is for 2 ranks, the devices of its grid

shard.grid @grid(shape = 2)

func.func @refused(%a: tensor<4xf32>) -> tensor<4xf32> {
  %sent = shard.send %a on @grid grid_axes = [0] destination = [1] : (tensor<4xf32>) -> tensor<4xf32>
  return %sent : tensor<4xf32>
}
