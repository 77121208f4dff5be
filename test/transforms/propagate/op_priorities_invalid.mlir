// RUN: not shard-opt %s --sdy-op-priority-propagate=op-priorities=dot_general 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not shard-opt %s --sdy-user-priority-propagate=op-priorities=stablehlo.dott 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not shard-opt %s --sdy-op-priority-propagate='op-priorities={stablehlo.add,{stablehlo.dot,stablehlo.add}}' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not shard-opt %s --sdy-op-priority-propagate='op-priorities=stablehlo.add run-op-priority-propagation=false' 2>&1 | FileCheck %s --check-prefix=OFF

// NAME: error: op-priorities: 'dot_general' is not an op name: expected 'dialect.name' or, for all ops of a dialect, 'dialect.*'
// UNKNOWN: error: op-priorities: unknown op 'stablehlo.dott'
// TWICE: error: op-priorities: 'stablehlo.add' is given twice
// OFF: error: op-priorities have no effect with run-op-priority-propagation=false
func.func @main() {
  return
}
